#pragma once
// Tolerations: which taints do not keep the tasks of a group off a node. A toleration is kept as one line of text:
//
//   KEY                 taints with this key, whatever their value and effect (Kubernetes' operator Exists)
//   KEY=VALUE           those with this value (operator Equal); KEY= those without a value
//   KEY:EFFECT          those with this effect, NoSchedule or NoExecute; likewise KEY=VALUE:EFFECT
//   *  or  *:EFFECT     taints with any key
//
// A taint that comes later, on whatever node, is judged by the same text.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/node.h"

namespace berth {

struct Toleration {
  std::string key;                   // empty: any
  std::optional<std::string> value;  // absent: any
  std::optional<TaintEffect> effect;
  bool operator==(const Toleration&) const = default;
};

Result<Toleration> parse_toleration(std::string_view text);
std::string text_of(const Toleration& toleration);
// Returns KEY, with =VALUE if it has one, and :NoExecute if that is its effect.
std::string text_of(const Taint& taint);

bool tolerates(std::string_view toleration, const Taint& taint);
bool tolerates(const std::vector<std::string>& tolerations, const Taint& taint);
bool tolerates_all(const std::vector<std::string>& tolerations, const std::vector<Taint>& taints);

}  // namespace berth
