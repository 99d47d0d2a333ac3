#pragma once
// Admission rules of a queue: what the jobs submitted below it have to keep to, besides the limits of quotas. A job
// keeps to the rules of its queue and of all queues above it. Total and pure: no state, no clock.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fields.h"
#include "base/result.h"
#include "model/job.h"
#include "model/pod_risk.h"
#include "model/role.h"

namespace berth {

// What happens to a job that breaks a rule. enforce: it is refused. warn: it is accepted, and its submitter is told.
// dry-run: it is accepted, and only its event says so.
enum class AdmissionMode { kEnforce, kWarn, kDryRun };
BERTH_ENUM_NAMES(AdmissionMode, "enforce", "warn", "dry-run");

// A set of options to forbid, by the name of the Pod Security Standard of Kubernetes whose controls they are.
enum class SecurityStandard { kBaseline, kRestricted };
BERTH_ENUM_NAMES(SecurityStandard, "baseline", "restricted");

// For which jobs it is: all three hold. What it asks of them: everything that is stated.
struct AdmissionRule {
  std::string name;
  AdmissionMode mode = AdmissionMode::kEnforce;
  std::vector<JobClass> classes = {};  // empty: all classes
  std::vector<Role> roles = {};        // roles with which it is submitted; empty: all roles
  std::int64_t above_gpu_milli = -1;   // only jobs with more milli-GPUs than this; -1: all jobs

  std::vector<std::string> images = {};  // each image is one of these, or begins with one that ends in `*`; empty: any
  bool digest = false;                   // each image is named by its digest
  std::optional<std::int64_t> max_gpu_milli = {};  // of the whole job; of an array one element
  std::int64_t max_time_s = 0;                     // a time limit is stated, and is at most this; 0: not asked
  bool checkpoint = false;                         // it saves its work when it is asked to stop
  std::vector<ForbiddenOption> forbid = {};
  std::vector<std::string> labels = {};      // labels that it carries, with a value
  std::optional<SecurityStandard> use = {};  // forbids the options of the set, too
  std::vector<std::string> host_paths = {};  // each path of the host is one of these, or below one that ends in `/*`
  bool operator==(const AdmissionRule&) const = default;
  static constexpr auto fields() {
    return field_list(field("name", &AdmissionRule::name), field("mode", &AdmissionRule::mode),
                      field("classes", &AdmissionRule::classes), field("roles", &AdmissionRule::roles),
                      field("above_gpu_milli", &AdmissionRule::above_gpu_milli),
                      field("images", &AdmissionRule::images), field("digest", &AdmissionRule::digest),
                      field("max_gpu_milli", &AdmissionRule::max_gpu_milli),
                      field("max_time_s", &AdmissionRule::max_time_s), field("checkpoint", &AdmissionRule::checkpoint),
                      field("forbid", &AdmissionRule::forbid), field("labels", &AdmissionRule::labels),
                      field_if_set("use", &AdmissionRule::use), field_if_set("host_paths", &AdmissionRule::host_paths));
  }
};

inline constexpr std::size_t kMostAdmissionRules = 64;  // of one queue
inline constexpr std::size_t kMostRuleItems = 256;      // in one list of a rule

// Returns what is wrong with the rules of one queue, beginning with the name of the rule; nothing if they are sound.
std::vector<std::string> mistakes_in(const std::vector<AdmissionRule>& rules);

// Returns true if the rule is for a job like this one, submitted with this role. Absent: the job comes from a cluster
// whose users have no roles here, and counts as a member's.
bool applies(const AdmissionRule& rule, const JobSpec& spec, std::optional<Role> role);

// Returns all options that the rule forbids, those of its set too: ascending, each once.
std::vector<ForbiddenOption> forbidden_by(const AdmissionRule& rule);

// Returns true if the rule cannot be tried on a job of pods whose risks are not known.
bool asks_for_risks(const AdmissionRule& rule);

// Returns everything with which the job breaks the rule, as sentences without full stop that name the key of the job,
// or the container and field of its pods, and what would be right; nothing if it keeps to it. At most kMostBroken, the
// last of which then says how many more there are. `risks` are those of its pods; what is not known breaks nothing.
std::vector<std::string> broken_by(const AdmissionRule& rule, const JobSpec& spec, const PodRisks& risks = {});
inline constexpr std::size_t kMostBroken = 20;

}  // namespace berth
