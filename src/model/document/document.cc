#include "model/document/document.h"

#include <algorithm>
#include <array>

namespace berth::document {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Returns true for words that some YAML readers do not take for a string.
bool is_reserved(std::string_view text) {
  static constexpr auto kWords =
      std::to_array<std::string_view>({"null", "true", "false", "yes", "no", "on", "off", "y", "n"});
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  }
  return std::find(kWords.begin(), kWords.end(), lower) != kWords.end();
}

// Returns true if a string may be written in YAML without quotes. It is strict: anything unusual is quoted.
bool is_plain_safe(std::string_view text) {
  if (text.empty() || is_reserved(text)) return false;
  if (!is_letter(text.front()) && text.front() != '/' && text.front() != '_') return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return is_letter(c) || is_digit(c) || std::string_view("_./+@=-").find(c) != std::string_view::npos;
  });
}

// Returns true if JSON can hold the scalar unchanged: a boolean, or a number in the grammar of JSON.
bool is_json_literal(std::string_view text) {
  if (text == "true" || text == "false") return true;
  if (text.starts_with('-')) text.remove_prefix(1);
  const std::size_t point = std::min(text.find('.'), text.size());
  const std::string_view whole = text.substr(0, point);
  if (whole.empty() || (whole.size() > 1 && whole.front() == '0')) return false;
  if (!std::all_of(whole.begin(), whole.end(), is_digit)) return false;
  if (point == text.size()) return true;
  const std::string_view rest = text.substr(point + 1);
  return !rest.empty() && std::all_of(rest.begin(), rest.end(), is_digit);
}

// Returns a JSON string, which is also a double-quoted YAML string.
std::string quoted(std::string_view text) {
  static constexpr std::string_view kHex = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      out += "\\u00";
      out += kHex[byte >> 4U];
      out += kHex[byte & 0xfU];
    } else {
      out += c;
    }
  }
  return out + '"';
}

// Returns true if an unquoted scalar may be printed unchanged: a number, an amount such as 64GiB, or a boolean.
bool is_word(std::string_view text) {
  // a dash or dots alone do not count
  const std::size_t first = text.starts_with('-') || text.starts_with('.') ? 1 : 0;
  if (first >= text.size() || !(is_letter(text[first]) || is_digit(text[first]))) return false;
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return is_letter(c) || is_digit(c) || c == '.' || c == '-'; });
}

std::string yaml_string(std::string_view text) { return is_plain_safe(text) ? std::string(text) : quoted(text); }

bool is_leaf(const Node& node) {
  return node.kind == NodeKind::kNull || node.kind == NodeKind::kScalar ||
         (node.kind == NodeKind::kList && node.items.empty()) || (node.kind == NodeKind::kMap && node.entries.empty());
}

bool fits_on_one_line(const Node& node) {
  return is_leaf(node) || (node.kind == NodeKind::kList && std::all_of(node.items.begin(), node.items.end(), is_leaf));
}

std::string one_line(const Node& node) {
  switch (node.kind) {
    case NodeKind::kNull:
      return "null";
    case NodeKind::kScalar:
      return !node.quoted && is_word(node.text) ? node.text : yaml_string(node.text);
    case NodeKind::kMap:
      return "{}";
    case NodeKind::kList:
      break;
  }
  std::string out = "[";
  for (const Node& item : node.items) out += (out.size() > 1 ? ", " : "") + one_line(item);
  return out + "]";
}

// Writes `node` as a block. Its first line continues the current one; the others are indented by `indent`.
void write_yaml(const Node& node, std::size_t indent, std::string& out) {
  const std::string margin(indent, ' ');
  bool first = true;
  const auto begin_line = [&] {
    if (!first) out += margin;
    first = false;
  };
  if (fits_on_one_line(node)) {
    out += one_line(node) + "\n";
  } else if (node.kind == NodeKind::kList) {
    for (const Node& item : node.items) {
      begin_line();
      out += "- ";
      write_yaml(item, indent + 2, out);
    }
  } else {
    for (const Entry& entry : node.entries) {
      begin_line();
      out += yaml_string(entry.key) + ":";
      out += fits_on_one_line(entry.value) ? " " : "\n" + margin + "  ";
      write_yaml(entry.value, indent + 2, out);
    }
  }
}

void write_json(const Node& node, std::size_t indent, std::string& out) {
  const std::string margin = "\n" + std::string(indent, ' ');
  const char* separator = "";
  switch (node.kind) {
    case NodeKind::kNull:
      out += "null";
      return;
    case NodeKind::kScalar:
      out += !node.quoted && is_json_literal(node.text) ? node.text : quoted(node.text);
      return;
    case NodeKind::kList:
      out += '[';
      for (const Node& item : node.items) {
        out += separator + margin + "  ";
        write_json(item, indent + 2, out);
        separator = ",";
      }
      out += node.items.empty() ? "]" : margin + "]";
      return;
    case NodeKind::kMap:
      out += '{';
      for (const Entry& entry : node.entries) {
        out += separator + margin + "  " + quoted(entry.key) + ": ";
        write_json(entry.value, indent + 2, out);
        separator = ",";
      }
      out += node.entries.empty() ? "}" : margin + "}";
      return;
  }
}

}  // namespace

const Node* Node::find(std::string_view key) const {
  for (const Entry& entry : entries) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

Node& Node::set(std::string_view key, Node value) {
  BERTH_CHECK(kind == NodeKind::kNull || kind == NodeKind::kMap);
  kind = NodeKind::kMap;
  for (Entry& entry : entries) {
    if (entry.key == key) {
      entry.value = std::move(value);
      return *this;
    }
  }
  entries.push_back({std::string(key), {}, std::move(value)});
  return *this;
}

std::string place(std::string_view file, Position at) {
  std::string text(file);
  if (at.line > 0) text += ":" + std::to_string(at.line) + ":" + std::to_string(at.column);
  return text + ": ";
}

std::string mistake_line(std::string_view file, const Mistake& mistake) {
  return place(file, mistake.at) + (mistake.path.empty() ? "" : mistake.path + ": ") + mistake.message;
}

Error error_of(std::string_view file, const std::vector<Mistake>& mistakes) {
  std::string text;
  for (const Mistake& one : mistakes) text += (text.empty() ? "" : "\n") + mistake_line(file, one);
  return invalid(std::move(text));
}

Node map_node() {
  Node node;
  node.kind = NodeKind::kMap;
  return node;
}
Node list_node() {
  Node node;
  node.kind = NodeKind::kList;
  return node;
}
Node string_node(std::string_view text) {
  Node node = plain_node(text);
  node.quoted = true;
  return node;
}
Node plain_node(std::string_view text) {
  Node node;
  node.kind = NodeKind::kScalar;
  node.text = text;
  return node;
}

Node integer_node(std::int64_t value) { return plain_node(std::to_string(value)); }

std::string to_yaml(const Node& node) {
  std::string out;
  write_yaml(node, 0, out);
  return out;
}

std::string to_json_text(const Node& node) {
  std::string out;
  write_json(node, 0, out);
  return out + "\n";
}

}  // namespace berth::document
