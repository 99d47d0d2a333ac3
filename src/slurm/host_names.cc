#include "slurm/host_names.h"

#include <algorithm>
#include <cstdint>

namespace berth::slurm {
namespace {

using Names = std::vector<std::string>;

constexpr std::size_t kMostDigits = 9;

std::optional<std::int64_t> host_number(std::string_view text) {
  if (text.empty() || text.size() > kMostDigits) return std::nullopt;
  std::int64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return value;
}

// The texts of "3-5,9" or "01-03"; nothing if it is no such list.
std::optional<Names> texts_of_ranges(std::string_view ranges) {
  Names texts;
  while (true) {
    const std::string_view range = ranges.substr(0, ranges.find(','));
    const std::string_view first_text = range.substr(0, range.find('-'));
    const auto first = host_number(first_text);
    const auto last = first_text.size() == range.size() ? first : host_number(range.substr(first_text.size() + 1));
    if (!first || !last || *last < *first || *last - *first >= static_cast<std::int64_t>(kMostHostNames))
      return std::nullopt;
    for (std::int64_t number = *first; number <= *last; ++number) {
      const std::string digits = std::to_string(number);
      texts.push_back(std::string(first_text.size() - std::min(first_text.size(), digits.size()), '0') + digits);
    }
    if (texts.size() > kMostHostNames) return std::nullopt;
    if (range.size() == ranges.size()) return texts;
    ranges.remove_prefix(range.size() + 1);
  }
}

// Adds one word of the list, "r[1-2]n[1-4]". False if it is none, or too long.
bool add_word(std::string_view word, Names& names) {
  Names begun{""};
  while (!word.empty()) {
    const std::string_view plain = word.substr(0, word.find('['));
    if (plain.find(']') != std::string_view::npos) return false;
    for (std::string& name : begun) name += plain;
    word.remove_prefix(plain.size());
    if (word.empty()) break;
    const std::size_t end = word.find(']');
    if (end == std::string_view::npos) return false;
    const auto texts = texts_of_ranges(word.substr(1, end - 1));
    if (!texts || begun.size() * texts->size() > kMostHostNames) return false;
    word.remove_prefix(end + 1);
    Names longer;
    for (const std::string& name : begun) {
      for (const std::string& text : *texts) longer.push_back(name + text);
    }
    begun = std::move(longer);
  }
  names.insert(names.end(), begun.begin(), begun.end());
  return names.size() <= kMostHostNames;
}

}  // namespace

std::optional<Names> host_names(std::string_view list) {
  Names names;
  while (!list.empty()) {
    std::size_t end = 0;
    for (bool inside = false; end < list.size() && (inside || list[end] != ','); ++end) {
      if (list[end] == '[' || list[end] == ']') inside = list[end] == '[';
    }
    if (end > 0 && !add_word(list.substr(0, end), names)) return std::nullopt;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return names;
}

}  // namespace berth::slurm
