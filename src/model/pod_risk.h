#pragma once
// What a job may be forbidden to ask for, and what of it the pods of a job ask for. A pod is read once, where it is
// seen (kube/pod_risks.h). What is kept of it here is small, names no value of a variable, and is enough to try any
// admission rule on it later.

#include <compare>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/fields.h"

namespace berth {

// An option of a job that a rule may forbid. exclusive: whole nodes. required-topology: all tasks, or those of a group,
// in one domain of a topology level. no-image: a plain process, where a rule about images would say nothing. The others
// are in docs/admission.md; their names follow the Pod Security Standards of Kubernetes.
enum class ForbiddenOption {
  kExclusive,
  kRequiredTopology,
  kNoImage,
  kPrivileged,
  kPrivilegeEscalation,
  kHostNamespaces,
  kHostPaths,
  kHostPorts,
  kAddedCapabilities,
  kKeptCapabilities,
  kRoot,
  kSecretEnv,
  kGpusWithoutLimits,
  kRequestsBelowLimits,
};
BERTH_ENUM_NAMES(ForbiddenOption, "exclusive", "required-topology", "no-image", "privileged", "privilege-escalation",
                 "host-namespaces", "host-paths", "host-ports", "added-capabilities", "kept-capabilities", "root",
                 "secret-env", "gpus-without-limits", "requests-below-limits");

// One thing in a pod that breaks a rule which forbids the option.
struct PodRisk {
  ForbiddenOption option = ForbiddenOption::kPrivileged;
  std::string where;  // the container, or the volume; empty: the pod as a whole
  // More of it, by the option: a path, a port, a capability, the name of a variable, a resource or a field; empty where
  // there is nothing to add; kMoreRisks: there are more than are kept.
  std::string what;
  auto operator<=>(const PodRisk&) const = default;
  static constexpr auto fields() {
    return field_list(field("option", &PodRisk::option), field("where", &PodRisk::where),
                      field("what", &PodRisk::what));
  }
};

inline constexpr const char* kMoreRisks = "...";
inline constexpr std::size_t kMostRisks = 64;  // of one option that are kept of a job

// Of all pods of a job, ascending, each once; none: they break nothing. Absent: it is not known, or the job is not made
// of pods.
using PodRisks = std::optional<std::vector<PodRisk>>;

}  // namespace berth
