#pragma once
// The options that a rule may forbid for the sake of security (model/admission.h): the sets of them, and what of a job
// breaks them. Total and pure.

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "model/admission.h"

namespace berth {

// Returns true for what a pod may ask for and a job of berth's own may not, or for what both may ask for in other
// words.
constexpr bool is_of_pods(ForbiddenOption option) { return option >= ForbiddenOption::kPrivileged; }

// What the standard `baseline` lets a container add.
inline constexpr auto kBaselineCapabilities =
    std::to_array<std::string_view>({"AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD",
                                     "NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"});

// Returns the options that are forbidden by the set, ascending.
std::vector<ForbiddenOption> options_of(SecurityStandard set);

// Returns true if the path is one of the list, or lies below one that ends in `/*`. A path with `..` in it lies
// nowhere: where it leads to is not known.
bool allows_host_path(const std::vector<std::string>& allowed, std::string_view path);

// Returns what is wrong with a path of `host_paths`; empty: nothing.
std::string mistake_in_host_path(std::string_view path);

// Appends what of the job, or of its pods, breaks the rule.
void check_security(const AdmissionRule& rule, const JobSpec& spec, const PodRisks& risks,
                    std::vector<std::string>& broken);

}  // namespace berth
