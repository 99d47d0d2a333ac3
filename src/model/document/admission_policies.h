#pragma once
// Admission rules as ValidatingAdmissionPolicies of Kubernetes: what an API server can refuse itself, when a pod is
// made and whatever schedules it. They hold in the namespaces with the label kRulesLabel of the queue.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/admission.h"

namespace berth::document {

inline constexpr std::string_view kRulesLabel = "berth.dev/rules";
inline constexpr std::string_view kLabelOfRoot = "cluster";

// A rule, and the queue at which it is set; empty: the root.
struct RuleOfQueue {
  std::string queue;
  AdmissionRule rule;
};

// Returns the policies of these rules and their bindings, as YAML with several documents. A comment says of each rule
// what of it stands in none of them. `queue`: the one whose jobs keep to all of the rules; empty: the root.
// Error: the path of the queue is too long for a label.
Result<std::string> policies_of(const std::vector<RuleOfQueue>& rules, std::string_view queue);

}  // namespace berth::document
