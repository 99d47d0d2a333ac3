// The adapter of yaml-cpp, and the only file that uses it. It uses the event interface and not the nodes. So an alias
// is refused as soon as it is met and never expanded, and depth and size are limited while they grow. The parser
// recurses once per level and reports each level before it enters it, so a stop at kMaxDepth limits its stack.

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <set>
#include <sstream>

#include "base/utf8.h"
#include "model/document/document.h"

namespace berth::document {
namespace {

Position position_of(const YAML::Mark& mark) {
  if (mark.is_null()) return {1, 1};
  return {mark.line + 1, mark.column + 1};
}

// Thrown inside yaml-cpp's callbacks, which have no other way to stop it; caught in parse().
struct Refusal {
  Position at;
  std::string message;
};

class TreeBuilder final : public YAML::EventHandler {
 public:
  explicit TreeBuilder(std::string_view text) : text_(text) {}
  Node take() { return std::move(root_); }
  // The innermost list or map that has not ended; null outside of all.
  const Node* innermost() const { return open_.empty() ? nullptr : &open_.back().node; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (started_) {
      throw Refusal{position_of(mark), "a second document begins here; give one document in one file"};
    }
    started_ = true;
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_anchor(mark, anchor);
    Node node;
    node.at = position_of(mark);
    add(std::move(node));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    throw Refusal{position_of(mark), "aliases (*name) are not accepted; write the value out"};
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_anchor(mark, anchor);
    if (tag != "!" && tag != "?" && !tag.empty()) refuse_tag(mark);
    if (tag == "!" && character_at(mark) == '!') refuse_tag(mark);
    if (tag == "!" && !is_closed(mark))
      throw Refusal{position_of(mark), "a string begins here and has no closing quote"};
    if (value.find('\0') != std::string::npos) throw Refusal{position_of(mark), "a string holds a NUL; leave it out"};
    // yaml-cpp 0.7 turns \N and \_ into single bytes.
    if (!is_utf8(value)) {
      throw Refusal{position_of(mark), "the escapes \\N and \\_ are not accepted; write \\u0085 or \\u00a0"};
    }
    Node node;
    node.kind = NodeKind::kScalar;
    node.at = position_of(mark);
    node.text = value;
    node.quoted = tag == "!";
    add(std::move(node));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, NodeKind::kList);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, NodeKind::kMap);
  }
  void OnMapEnd() override { close(); }

 private:
  // A list or map that is being filled. A map gets its keys and values in turn.
  struct Open {
    Node node;
    bool has_key = false;
    Entry entry;
    std::set<std::string> keys;
  };

  [[noreturn]] static void refuse_tag(const YAML::Mark& mark) {
    throw Refusal{position_of(mark), "tags (!name) are not accepted; leave the tag out"};
  }
  static void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor == YAML::NullAnchor) return;
    throw Refusal{position_of(mark), "anchors (&name) are not accepted; write the value out where it is needed"};
  }
  // yaml-cpp reports the same tag for a quoted string and for `!`; the text tells which one it is.
  char character_at(const YAML::Mark& mark) const {
    const auto pos = static_cast<std::size_t>(mark.pos);
    return mark.pos >= 0 && pos < text_.size() ? text_[pos] : '\0';
  }
  // yaml-cpp 0.7 takes the end of a text after a line break for a closing quote.
  bool is_closed(const YAML::Mark& mark) const {
    const char quote = character_at(mark);
    if (quote != '"' && quote != '\'') return true;
    for (std::size_t i = static_cast<std::size_t>(mark.pos) + 1; i < text_.size(); ++i) {
      const bool doubled = quote == '\'' && text_.substr(i).starts_with("''");
      if (doubled || (quote == '"' && text_[i] == '\\')) {
        ++i;
      } else if (text_[i] == quote) {
        return true;
      }
    }
    return false;
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, NodeKind kind) {
    refuse_anchor(mark, anchor);
    if (tag != "?" && !tag.empty()) refuse_tag(mark);
    if (open_.size() >= kMaxDepth) {
      throw Refusal{position_of(mark), "nested more than " + std::to_string(kMaxDepth) + " levels deep"};
    }
    Open& one = open_.emplace_back();
    one.node.kind = kind;
    one.node.at = position_of(mark);
  }
  void close() {
    Node node = std::move(open_.back().node);
    open_.pop_back();
    add(std::move(node));
  }

  void add(Node node) {
    if (++count_ > kMaxNodes) {
      throw Refusal{node.at, "more than " + std::to_string(kMaxNodes) + " values; split the document"};
    }
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = open_.back();
    if (parent.node.kind == NodeKind::kList) {
      parent.node.items.push_back(std::move(node));
    } else if (!parent.has_key) {
      begin_entry(parent, std::move(node));
    } else {
      parent.entry.value = std::move(node);
      parent.node.entries.push_back(std::move(parent.entry));
      parent.entry = {};
      parent.has_key = false;
    }
  }
  static void begin_entry(Open& parent, Node key) {
    if (key.kind != NodeKind::kScalar) throw Refusal{key.at, "a key must be a name"};
    // YAML ends a simple key at 1,024 characters: what is longer could be read in JSON alone, and not be printed again.
    constexpr std::size_t kLongestKey = 1000;
    if (to_yaml(string_node(key.text)).size() - 1 > kLongestKey) {  // without the end of the line
      throw Refusal{key.at, "this key has " + std::to_string(key.text.size()) + " bytes; YAML has room for " +
                                std::to_string(kLongestKey) + " as it is printed"};
    }
    if (key.text == "<<" && !key.quoted) {
      throw Refusal{key.at, "merge keys (<<) are not accepted; write the entries out"};
    }
    if (!parent.keys.insert(key.text).second) {
      throw Refusal{key.at, "'" + key.text + "' is given twice; keep one"};
    }
    parent.entry.key = std::move(key.text);
    parent.entry.at = key.at;
    parent.has_key = true;
  }

  std::string_view text_;
  std::vector<Open> open_;
  Node root_;
  std::size_t count_ = 0;
  bool started_ = false;
};

Position position_at(std::string_view text, std::size_t offset) {
  Position at{1, 1};
  for (const char c : text.substr(0, offset)) {
    ++at.column;
    if (c == '\n') at = {at.line + 1, 1};
  }
  return at;
}

bool looks_like_json(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && (text[first] == '{' || text[first] == '[');
}

// Replaces each tab of a JSON indentation, which YAML forbids, by one space, so that columns stay the same.
std::string spaces_for_tabs(std::string_view text) {
  std::string spaced(text);
  bool indentation = true;
  for (char& c : spaced) {
    if (indentation && c == '\t') c = ' ';
    indentation = c == '\n' || (indentation && c == ' ');
  }
  return spaced;
}

// Returns the value of the four hexadecimal digits after "\u", or -1.
long escaped_unit(std::string_view text, std::size_t at) {
  if (text.size() < at + 6 || text[at] != '\\' || text[at + 1] != 'u') return -1;
  long unit = 0;
  for (const char c : text.substr(at + 2, 4)) {
    const std::size_t digit =
        std::string_view("0123456789abcdef").find(c >= 'A' && c <= 'F' ? static_cast<char>(c + 32) : c);
    if (digit == std::string_view::npos) return -1;
    unit = unit * 16 + static_cast<long>(digit);
  }
  return unit;
}

// JSON writes a character beyond U+FFFF as two escapes; this replaces them by the single escape of YAML.
std::string joined_surrogates(std::string_view text) {
  std::string joined;
  joined.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const long high = escaped_unit(text, i);
    const long low = high >= 0xd800 && high < 0xdc00 ? escaped_unit(text, i + 6) : -1;
    if (low >= 0xdc00 && low < 0xe000) {
      std::ostringstream code;
      code << std::hex << 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
      joined += "\\U" + std::string(8 - code.str().size(), '0') + code.str();
      i += 12;
      continue;
    }
    const std::size_t length = text[i] == '\\' && i + 1 < text.size() ? 2 : 1;
    joined += text.substr(i, length);
    i += length;
  }
  return joined;
}

// Checks the bytes before they are parsed.
void check_bytes(std::string_view text) {
  if (const std::size_t bad = first_not_utf8(text); bad != std::string_view::npos) {
    throw Refusal{position_at(text, bad), "this is not UTF-8; save the file as UTF-8"};
  }
  const bool json = looks_like_json(text);
  bool indentation = true;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\0') throw Refusal{position_at(text, i), "the text holds a NUL byte; leave it out"};
    if (static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\n' && c != '\r') {
      throw Refusal{position_at(text, i), "the text holds a control character; write it as an escape in double quotes"};
    }
    if (c == '\t' && indentation && !json) {
      throw Refusal{position_at(text, i), "a tab in the indentation; indent with spaces"};
    }
    indentation = c == '\n' || (indentation && c == ' ');
  }
}

// What yaml-cpp says is wrong, in words that name the place and what would be right.
std::string syntax_message(const std::string& says, const Node* innermost) {
  const std::string line = innermost == nullptr ? "" : " that begins in line " + std::to_string(innermost->at.line);
  if (says == YAML::ErrorMsg::END_OF_MAP)
    return "this does not go on with the map" + line + "; write KEY: VALUE, indented as its other keys";
  if (says == YAML::ErrorMsg::END_OF_SEQ)
    return "this does not go on with the list" + line + "; write - VALUE, indented as its other items";
  if (says == YAML::ErrorMsg::END_OF_MAP_FLOW) return "the { of the map" + line + " has no closing } before this";
  if (says == YAML::ErrorMsg::END_OF_SEQ_FLOW) return "the [ of the list" + line + " has no closing ] before this";
  if (says == YAML::ErrorMsg::FLOW_END) return "a ] or } that closes nothing; leave it out";
  if (says == YAML::ErrorMsg::MAP_VALUE)
    return "a second ': ' in one line, or a key in the wrong place; put a text with a colon in quotes";
  if (says == YAML::ErrorMsg::BLOCK_ENTRY) return "a list cannot begin here; put its first - on a line of its own";
  if (says == YAML::ErrorMsg::EOF_IN_SCALAR) return "a string has no closing quote before the end of the text";
  return "this is not YAML or JSON: " + says;
}

Node build(const std::string& text, TreeBuilder& builder) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  if (parser.HandleNextDocument(builder)) parser.HandleNextDocument(builder);
  return builder.take();
}

}  // namespace

Result<Node> parse(std::string_view text, std::string_view file) {
  if (text.size() > kMaxBytes) {
    return Error{ErrorCode::kTooLarge,
                 std::string(file) + ": " + std::to_string(text.size()) + " bytes; a document has at most 1 MiB"};
  }
  return result_of(file, check_syntax(text));
}

Checked<Node> check_syntax(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  const std::string plain = looks_like_json(text) ? joined_surrogates(spaces_for_tabs(text)) : std::string(text);
  TreeBuilder builder(plain);
  try {
    check_bytes(text);
    Node root = build(plain, builder);
    if (root.kind == NodeKind::kNull) root.at = {1, 1};
    return {std::move(root)};
  } catch (const Refusal& refusal) {
    return {std::nullopt, {{refusal.at, "", refusal.message}}};
  } catch (const YAML::Exception& error) {
    return {std::nullopt, {{position_of(error.mark), "", syntax_message(error.msg, builder.innermost())}}};
  }
}

}  // namespace berth::document
