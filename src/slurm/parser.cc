#include "slurm/parser.h"

#include <algorithm>

namespace berth::slurm {
namespace {

class WordReader {
 public:
  WordReader(Tool tool, const std::vector<std::string>& words)
      : tool_(tool), options_(options_of(tool)), words_(words) {}

  Result<CommandWords> read() {
    for (; at_ < words_.size(); ++at_) {
      const std::string& word = words_[at_];
      if (word == "--") {
        take_rest(at_ + 1);
        break;
      }
      if (word.size() < 2 || word.front() != '-') {
        if (ends_at_operand(tool_)) {
          take_rest(at_);
          break;
        }
        found_.operands.push_back(word);
        continue;
      }
      if (auto read = word[1] == '-' ? read_long(word.substr(2)) : read_short(word); !read) return read.error();
    }
    return std::move(found_);
  }

 private:
  void take_rest(std::size_t from) {
    for (std::size_t i = from; i < words_.size(); ++i) found_.operands.push_back(words_[i]);
  }

  Result<Option> named(const std::string& name) const {
    std::vector<Option> meant;
    for (const Option& option : options_) {
      if (option.name == name) return option;
      if (option.name.starts_with(name)) meant.push_back(option);
    }
    if (meant.size() == 1) return meant.front();
    if (meant.empty()) return invalid("unrecognized option '--" + name + "'");
    std::string text = "option '--" + name + "' is ambiguous; possibilities:";
    for (const Option& option : meant) text += " '--" + std::string(option.name) + "'";
    return invalid(text);
  }

  Result<void> read_long(const std::string& text) {
    const std::size_t equals = text.find('=');
    const auto option = named(text.substr(0, equals));
    if (!option) return option.error();
    const std::string shown = "option '--" + std::string(option->name) + "'";
    if (equals != std::string::npos) {
      if (option->takes == Takes::kNothing) return invalid(shown + " doesn't allow an argument");
      found_.given.push_back({*option, text.substr(equals + 1), true});
      return {};
    }
    if (option->takes != Takes::kValue) {
      found_.given.push_back({*option, "", false});
      return {};
    }
    if (at_ + 1 >= words_.size()) return invalid(shown + " requires an argument");
    found_.given.push_back({*option, words_[++at_], true});
    return {};
  }

  Result<void> read_short(const std::string& word) {
    for (std::size_t i = 1; i < word.size(); ++i) {
      const auto option = std::find_if(options_.begin(), options_.end(),
                                       [&](const Option& one) { return one.letter != 0 && one.letter == word[i]; });
      if (option == options_.end()) return invalid("invalid option -- '" + std::string(1, word[i]) + "'");
      if (option->takes == Takes::kNothing) {
        found_.given.push_back({*option, "", false});
        continue;
      }
      if (i + 1 < word.size()) {
        found_.given.push_back({*option, word.substr(i + 1), true});
      } else if (option->takes == Takes::kMaybe) {
        found_.given.push_back({*option, "", false});
      } else if (at_ + 1 < words_.size()) {
        found_.given.push_back({*option, words_[++at_], true});
      } else {
        return invalid("option requires an argument -- '" + std::string(1, word[i]) + "'");
      }
      return {};
    }
    return {};
  }

  Tool tool_;
  std::vector<Option> options_;
  const std::vector<std::string>& words_;
  std::size_t at_ = 0;
  CommandWords found_;
};

}  // namespace

bool CommandWords::has(std::string_view name) const {
  return std::any_of(given.begin(), given.end(), [&](const Given& one) { return one.option.name == name; });
}

std::optional<std::string> CommandWords::value(std::string_view name) const {
  std::optional<std::string> last;
  for (const Given& one : given) {
    if (one.option.name == name) last = one.value;
  }
  return last;
}

bool ends_at_operand(Tool tool) { return tool == Tool::kSbatch || tool == Tool::kSrun; }

Result<CommandWords> parse_words(Tool tool, const std::vector<std::string>& words) {
  return WordReader(tool, words).read();
}

NotHeld not_held(const CommandWords& words) {
  NotHeld found;
  for (const Given& one : words.given) {
    const std::string text = "--" + std::string(one.option.name) + " is not held: " + std::string(one.option.says);
    switch (one.option.held) {
      case Held::kHeld:
        break;
      case Held::kWarned:
        if (std::find(found.warnings.begin(), found.warnings.end(), text) == found.warnings.end())
          found.warnings.push_back(text);
        break;
      case Held::kRefused:
        if (!found.refusal) found.refusal = text;
        break;
    }
  }
  return found;
}

}  // namespace berth::slurm
