#include "model/document/plain_keys.h"

#include <algorithm>

#include "model/document/quantity.h"

namespace berth::document {

std::string AsText::read(const KeyForm& form, const Value& value) {
  std::string text = value.string();
  if (form.high > 0 && text.size() > static_cast<std::size_t>(form.high)) {
    value.refuse("this has " + std::to_string(text.size()) + " bytes; give at most " + std::to_string(form.high));
  }
  return text;
}

std::string AsLevel::read(const KeyForm&, const Value& value) {
  std::string name = value.string();
  if (name.empty()) value.refuse("this is empty; give a level of the topology, or leave it out");
  return name;
}

std::int64_t AsBytes::read(const KeyForm&, const Value& value) { return value.memory_mib(); }
Node AsBytes::node(std::int64_t mib) { return plain_node(memory_text(mib)); }

std::int64_t AsDuration::read(const KeyForm&, const Value& value) {
  const std::int64_t seconds = value.duration_s();
  if (seconds == 0) value.refuse("0 is no time; give one such as 10m or 2h, or leave it out for none");
  return seconds;
}
Node AsDuration::node(std::int64_t seconds) { return plain_node(duration_text(seconds)); }

Node AsTime::node(const std::optional<Timestamp>& time) { return time ? string_node(to_iso8601(*time)) : Node(); }

Node AsTexts::node(const std::vector<std::string>& texts) {
  Node list = list_node();
  for (const std::string& text : texts) list.items.push_back(string_node(text));
  return list;
}

Node AsPairs::node(const Labels& pairs) {
  Node map = map_node();
  for (const auto& [name, value] : pairs) map.set(name, string_node(value));
  return map;
}

Labels AsLabels::read(const KeyForm&, const Value& value) {
  Labels all = value.string_map();
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace berth::document
