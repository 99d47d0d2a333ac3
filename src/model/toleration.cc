#include "model/toleration.h"

#include <algorithm>

namespace berth {
namespace {

struct Parts {
  std::string_view key;
  std::optional<std::string_view> value;
  std::optional<std::string_view> effect;
};

Parts parts_of(std::string_view text) {
  Parts parts;
  if (const std::size_t colon = text.rfind(':'); colon != std::string_view::npos) {
    parts.effect = text.substr(colon + 1);
    text = text.substr(0, colon);
  }
  const std::size_t equals = text.find('=');
  parts.key = text.substr(0, equals);
  if (equals != std::string_view::npos) parts.value = text.substr(equals + 1);
  return parts;
}

}  // namespace

Result<Toleration> parse_toleration(std::string_view text) {
  const Parts parts = parts_of(text);
  const std::string said = "'" + std::string(text.substr(0, 80)) + "'";
  if (parts.key.empty())
    return invalid(said + " has no key; give KEY, KEY=VALUE or KEY=VALUE:EFFECT, or * for every taint");
  Toleration toleration;
  if (parts.key != "*") toleration.key = parts.key;
  if (parts.value && toleration.key.empty()) return invalid(said + ": a value needs the key of its taint");
  if (parts.value) toleration.value = *parts.value;
  if (!parts.effect) return toleration;
  toleration.effect = enum_from_name<TaintEffect>(*parts.effect);
  if (!toleration.effect)
    return invalid(said + ": there is no effect '" + std::string(parts.effect->substr(0, 40)) +
                   "'; NoSchedule and NoExecute keep tasks away");
  return toleration;
}

std::string text_of(const Toleration& toleration) {
  std::string text = toleration.key.empty() ? "*" : toleration.key;
  if (toleration.value) text += "=" + *toleration.value;
  if (toleration.effect) text += ":" + std::string(name_of(*toleration.effect));
  return text;
}

std::string text_of(const Taint& taint) {
  return taint.key + (taint.value.empty() ? "" : "=" + taint.value) +
         (taint.effect == TaintEffect::kNoSchedule ? "" : ":" + std::string(name_of(taint.effect)));
}

bool tolerates(std::string_view toleration, const Taint& taint) {
  if (toleration == taint.key) return true;  // in old logs the key of a taint had its value in it
  const Parts parts = parts_of(toleration);
  return (parts.key == "*" || parts.key == taint.key) && (!parts.value || *parts.value == taint.value) &&
         (!parts.effect || *parts.effect == name_of(taint.effect));
}

bool tolerates(const std::vector<std::string>& tolerations, const Taint& taint) {
  return std::any_of(tolerations.begin(), tolerations.end(),
                     [&](const std::string& toleration) { return tolerates(toleration, taint); });
}

bool tolerates_all(const std::vector<std::string>& tolerations, const std::vector<Taint>& taints) {
  return std::all_of(taints.begin(), taints.end(), [&](const Taint& taint) { return tolerates(tolerations, taint); });
}

}  // namespace berth
