#include "model/document/reading.h"

#include <algorithm>

#include "model/document/quantity.h"
#include "model/document/renamed.h"
#include "model/name.h"
#include "model/nearest.h"

namespace berth::document {
namespace {

std::string_view kind_word(const Node& node) {
  switch (node.kind) {
    case NodeKind::kNull:
      return "empty";
    case NodeKind::kScalar:
      return "a single value";
    case NodeKind::kList:
      return "a list";
    case NodeKind::kMap:
      return "a map";
  }
  return "";
}

std::string joined(std::span<const std::string_view> words) {
  std::string text;
  for (const std::string_view word : words) text += (text.empty() ? "" : ", ") + std::string(word);
  return text;
}

// A key may hold the end of a line; a mistake must not, since each is told in one line.
std::string one_line_of(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

}  // namespace

void Reading::refuse(Position at, std::string path, std::string message) {
  const auto same = [&](const Mistake& one) {
    if (at.line == 0) return one.path == path;  // a tree that was built has no lines
    return one.at.line == at.line && one.at.column == at.column;
  };
  if (std::none_of(mistakes_.begin(), mistakes_.end(), same)) tell(at, std::move(path), std::move(message));
}

void Reading::tell(Position at, std::string path, std::string message) {
  if (!full()) mistakes_.push_back({at, one_line_of(std::move(path)), one_line_of(std::move(message))});
}

std::vector<Mistake> Reading::take_mistakes() {
  std::stable_sort(mistakes_.begin(), mistakes_.end(), [](const Mistake& a, const Mistake& b) {
    return std::pair(a.at.line, a.at.column) < std::pair(b.at.line, b.at.column);
  });
  return std::exchange(mistakes_, {});
}

void Value::refuse(const std::string& message) const { reading_->refuse(node_->at, path_, message); }

bool Value::expect(NodeKind kind, std::string_view what) const {
  if (node_->kind == kind) return true;
  refuse("this is " + std::string(kind_word(*node_)) + "; give " + std::string(what));
  return false;
}

void Value::map(const std::vector<Key>& keys) const {
  map(keys, [](const Entry&, const Value&) { return false; });
}

void Value::map(const std::vector<Key>& keys, const std::function<bool(const Entry&, const Value&)>& other) const {
  each_entry([&](const Entry& entry, const Value& value) {
    const auto key = std::find_if(keys.begin(), keys.end(), [&](const Key& one) { return one.name == entry.key; });
    if (key != keys.end()) return key->read(value);
    if (other(entry, value)) return;
    std::vector<std::string_view> names;
    for (const Key& one : keys) names.push_back(one.name);
    const std::string word = "'" + entry.key.substr(0, 80) + "'";
    if (const auto now = renamed(entry.key, names))
      return reading_->refuse(entry.at, path_, word + " is now '" + std::string(*now) + "'");
    const auto meant = nearest(entry.key, names);
    reading_->refuse(entry.at, path_,
                     "there is no key " + word + "; " +
                         (meant ? "did you mean '" + std::string(*meant) + "'?" : "known are " + joined(names)));
  });
}

void Value::each_entry(const std::function<void(const Entry&, const Value&)>& visit) const {
  if (!expect(NodeKind::kMap, "a map (key: value)")) return;
  for (const Entry& entry : node_->entries) {
    if (reading_->full()) return;
    visit(entry, Value(*reading_, entry.value, (path_.empty() ? "" : path_ + ".") + entry.key.substr(0, 80)));
  }
}

void Value::each_item(const std::function<void(const Value&)>& visit) const {
  if (!expect(NodeKind::kList, "a list")) return;
  for (std::size_t i = 0; i < node_->items.size() && !reading_->full(); ++i) {
    visit(Value(*reading_, node_->items[i], path_ + "[" + std::to_string(i) + "]"));
  }
}

std::string Value::string() const {
  if (!expect(NodeKind::kScalar, "a string")) return {};
  return node_->text;
}

std::string Value::name() const {
  std::string text = string();
  if (!well_formed_name(text)) {
    refuse("'" + text.substr(0, 80) + "' is not a name; " + std::string(kNameRule));
  }
  return text;
}

bool Value::boolean() const {
  if (!expect(NodeKind::kScalar, "true or false")) return false;
  const std::string& text = node_->text;
  const bool known = text == "true" || text == "false";
  if (node_->quoted && known) {
    refuse("\"" + text + "\" is a string; write " + text + " without quotes");
  } else if (!known) {
    const bool on = text == "yes" || text == "on" || text == "1";
    const bool off = text == "no" || text == "off" || text == "0";
    const std::string right = on ? "write true" : off ? "write false" : "give one of them";
    refuse("'" + text.substr(0, 80) + "' is neither true nor false; " + right);
  }
  return text == "true";
}

template <class T>
T Value::take(Result<T> parsed) const {
  if (parsed) return *parsed;
  refuse(parsed.error().message);
  return T{};
}

std::int64_t Value::integer(std::int64_t low, std::int64_t high) const {
  return expect(NodeKind::kScalar, "an integer") ? take(parse_integer(node_->text, low, high)) : 0;
}
std::int64_t Value::milli() const {
  return expect(NodeKind::kScalar, "an amount such as 8 or 0.5") ? take(parse_milli(node_->text)) : 0;
}
std::int64_t Value::memory_mib() const {
  return expect(NodeKind::kScalar, "a size such as 64GiB") ? take(parse_memory_mib(node_->text)) : 0;
}
std::int64_t Value::duration_s() const {
  return expect(NodeKind::kScalar, "a time such as 90s, 10m, 2h or 3d") ? take(parse_duration_s(node_->text)) : 0;
}

std::optional<Timestamp> Value::time() const {
  const auto parsed = from_iso8601(string());
  if (!parsed || parsed->is_never())
    refuse("'" + node_->text.substr(0, 80) + "' is not an instant; give one such as 2026-11-21T08:15:30Z" +
           leap_second_note(node_->text));
  return parsed;
}

std::vector<std::string> Value::strings() const {
  if (node_->kind == NodeKind::kScalar) return {node_->text};
  std::vector<std::string> all;
  each_item([&](const Value& item) { all.push_back(item.string()); });
  return all;
}

std::vector<std::pair<std::string, std::string>> Value::string_map() const {
  std::vector<std::pair<std::string, std::string>> all;
  each_entry([&](const Entry& entry, const Value& value) { all.emplace_back(entry.key, value.string()); });
  return all;
}

void Value::refuse_word(std::span<const std::string_view> words) const {
  const auto meant = nearest(node_->text, words);
  refuse("'" + node_->text.substr(0, 80) + "' is none of " + joined(words) +
         (meant ? "; did you mean '" + std::string(*meant) + "'?" : ""));
}

}  // namespace berth::document
