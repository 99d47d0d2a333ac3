#include "model/document/admission_document.h"

#include "model/document/quantity.h"

namespace berth::document {
namespace {

template <class E>
std::vector<E> read_words(const Value& value) {
  std::vector<E> words;
  value.each_item([&](const Value& item) { words.push_back(item.word<E>()); });
  return words;
}

AdmissionRule read_rule(const Entry& entry, const Value& body) {
  AdmissionRule rule;
  rule.name = entry.key;
  body.map({
      {"mode", [&](const Value& v) { rule.mode = v.word<AdmissionMode>(); }},
      {"classes", [&](const Value& v) { rule.classes = read_words<JobClass>(v); }},
      {"roles", [&](const Value& v) { rule.roles = read_words<Role>(v); }},
      {"above_gpus", [&](const Value& v) { rule.above_gpu_milli = v.milli(); }},
      {"images", [&](const Value& v) { rule.images = v.strings(); }},
      {"digest", [&](const Value& v) { rule.digest = v.boolean(); }},
      {"max_gpus", [&](const Value& v) { rule.max_gpu_milli = v.milli(); }},
      {"max_time",
       [&](const Value& v) {
         rule.max_time_s = v.duration_s();
         if (rule.max_time_s == 0) v.refuse("0 is no time; give one such as 7d, or leave it out");
       }},
      {"checkpoint", [&](const Value& v) { rule.checkpoint = v.boolean(); }},
      {"forbid", [&](const Value& v) { rule.forbid = read_words<ForbiddenOption>(v); }},
      {"labels", [&](const Value& v) { rule.labels = v.strings(); }},
      {"use", [&](const Value& v) { rule.use = v.word<SecurityStandard>(); }},
      {"host_paths", [&](const Value& v) { rule.host_paths = v.strings(); }},
  });
  return rule;
}

// The position of the rule that the mistake names; else that of the document.
Position place_of(const std::string& mistake, const Node& document) {
  if (const Node* rules = document.find("admission")) {
    for (const Entry& entry : rules->entries) {
      if (mistake.starts_with("rule '" + entry.key + "'")) return entry.at;
    }
  }
  return document.at;
}

template <class E>
Node words_node(const std::vector<E>& words) {
  Node list = list_node();
  for (const E one : words) list.items.push_back(string_node(name_of(one)));
  return list;
}

Node texts_node(const std::vector<std::string>& strings) {
  Node list = list_node();
  for (const std::string& one : strings) list.items.push_back(string_node(one));
  return list;
}

}  // namespace

Node rule_node(const AdmissionRule& rule) {
  Node map = map_node();
  map.set("mode", string_node(name_of(rule.mode)));
  if (!rule.classes.empty()) map.set("classes", words_node(rule.classes));
  if (!rule.roles.empty()) map.set("roles", words_node(rule.roles));
  if (rule.above_gpu_milli >= 0) map.set("above_gpus", plain_node(milli_text(rule.above_gpu_milli)));
  if (!rule.images.empty()) map.set("images", texts_node(rule.images));
  if (rule.digest) map.set("digest", plain_node("true"));
  if (rule.max_gpu_milli) map.set("max_gpus", plain_node(milli_text(*rule.max_gpu_milli)));
  if (rule.max_time_s > 0) map.set("max_time", plain_node(duration_text(rule.max_time_s)));
  if (rule.checkpoint) map.set("checkpoint", plain_node("true"));
  if (!rule.forbid.empty()) map.set("forbid", words_node(rule.forbid));
  if (!rule.labels.empty()) map.set("labels", texts_node(rule.labels));
  if (rule.use) map.set("use", string_node(name_of(*rule.use)));
  if (!rule.host_paths.empty()) map.set("host_paths", texts_node(rule.host_paths));
  return map;
}

std::vector<AdmissionRule> read_admission_rules(const Value& value) {
  std::vector<AdmissionRule> rules;
  value.each_entry([&](const Entry& entry, const Value& body) { rules.push_back(read_rule(entry, body)); });
  return rules;
}

Result<std::vector<AdmissionRule>> read_rules(std::string_view text, std::string_view file) {
  const auto tree = parse(text, file);
  if (!tree) return tree.error();
  Reading reading;
  Checked<std::vector<AdmissionRule>> rules{std::vector<AdmissionRule>()};
  const Value root(reading, *tree, "");
  root.map({{"admission", [&](const Value& v) { rules.value = read_admission_rules(v); }}});
  if (reading.mistakes().empty() && tree->find("admission") == nullptr)
    root.refuse("the key admission is missing; give the rules below it");
  if (reading.mistakes().empty()) {
    for (const std::string& mistake : mistakes_in(*rules.value)) reading.tell(place_of(mistake, *tree), "", mistake);
  }
  if (!reading.mistakes().empty()) return error_of(file, reading.take_mistakes());
  return std::move(*rules.value);
}

Node admission_node(const std::vector<AdmissionRule>& rules) {
  Node map = map_node();
  for (const AdmissionRule& rule : rules) map.entries.push_back({rule.name, {}, rule_node(rule)});
  return map;
}

}  // namespace berth::document
