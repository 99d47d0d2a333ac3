#include "model/document/reading.h"

#include <algorithm>
#include <numeric>

#include "model/document/quantity.h"
#include "model/document/renamed.h"
#include "model/name.h"

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

// Levenshtein's distance, one row at a time.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i] == b[j] ? 0U : 1U);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, substituted});
    }
  }
  return row.back();
}

}  // namespace

std::optional<std::string_view> nearest(std::string_view word, std::span<const std::string_view> known) {
  constexpr std::size_t kLongest = 64;  // longer words are not typing errors
  if (word.size() > kLongest) return std::nullopt;
  std::optional<std::string_view> best;
  std::size_t best_distance = std::max<std::size_t>(word.size() / 3, 1) + 1;
  for (const std::string_view one : known) {
    const std::size_t distance = edit_distance(word, one);
    if (distance < best_distance) {
      best_distance = distance;
      best = one;
    }
  }
  return best;
}

void Value::refuse(const std::string& message) const {
  reading_->refuse(node_->at, (path_.empty() ? "" : path_ + ": ") + message);
}

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
    const std::string what = (path_.empty() ? "" : path_ + ": ");
    const std::string word = "'" + entry.key.substr(0, 80) + "'";
    if (const auto now = renamed(entry.key, names))
      return reading_->refuse(entry.at, what + word + " is now '" + std::string(*now) + "'");
    const auto meant = nearest(entry.key, names);
    reading_->refuse(entry.at,
                     what + "there is no key " + word + "; " +
                         (meant ? "did you mean '" + std::string(*meant) + "'?" : "known are " + joined(names)));
  });
}

void Value::each_entry(const std::function<void(const Entry&, const Value&)>& visit) const {
  if (!expect(NodeKind::kMap, "a map (key: value)")) return;
  for (const Entry& entry : node_->entries) {
    if (reading_->error()) return;
    visit(entry, Value(*reading_, entry.value, (path_.empty() ? "" : path_ + ".") + entry.key.substr(0, 80)));
  }
}

void Value::each_item(const std::function<void(const Value&)>& visit) const {
  if (!expect(NodeKind::kList, "a list")) return;
  for (std::size_t i = 0; i < node_->items.size() && !reading_->error(); ++i) {
    visit(Value(*reading_, node_->items[i], path_ + "[" + std::to_string(i) + "]"));
  }
}

std::string Value::string() const {
  if (!expect(NodeKind::kScalar, "a string")) return {};
  return node_->text;
}

std::string Value::name() const {
  std::string text = string();
  if (!reading_->error() && !well_formed_name(text)) {
    refuse("'" + text.substr(0, 80) + "' is not a name; " + std::string(kNameRule));
  }
  return text;
}

bool Value::boolean() const {
  if (!expect(NodeKind::kScalar, "true or false")) return false;
  if (node_->quoted || (node_->text != "true" && node_->text != "false")) {
    refuse("'" + node_->text.substr(0, 80) + "' is not a yes or no; give true or false");
  }
  return node_->text == "true";
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
    refuse("'" + node_->text.substr(0, 80) + "' is not an instant; give one such as 2026-11-21T08:15:30Z");
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
