#pragma once
// Whether a job that is submitted keeps to the admission rules of its queue and of the queues above it
// (model/admission.h).

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "control/batch.h"
#include "control/handle.h"
#include "model/command.h"
#include "model/effect.h"
#include "model/job.h"
#include "model/role.h"
#include "state/state.h"

namespace berth::control {

// Each text names the rule and its queue, then what breaks it and what would be right.
struct AdmissionVerdict {
  std::vector<std::string> refusals;      // by rules that are enforced
  std::vector<std::string> warnings;      // by rules that warn
  std::vector<std::string> broken_rules;  // rules that warn or are tried, as QUEUE:RULE; of the root :RULE
};

// Returns the root, and the queues from there down to the one at `path`. Requires: it exists.
std::vector<const state::QueueState*> queues_down_to(const state::State& state, std::string_view path);

// `more_images` are used by the job besides those of its task groups; `risks` are those of its pods. Requires: the
// queue of the job exists.
AdmissionVerdict judge(const state::State& state, const JobSpec& spec, std::optional<Role> role,
                       std::span<const std::string> more_images = {}, const PodRisks& risks = {});

// Returns what the rules that are enforced forbid to the pods of a job of pods. Requires: as above.
ForbiddenToPods forbidden_to_pods(const state::State& state, const JobSpec& spec);

// Sets the rules of a queue beside those of the configuration. Error: no such queue, or a rule that breaks
// mistakes_in() or has the name of one that the configuration has there.
Result<Reply> set_rules(Batch& batch, const SetRules& command);

// The error of a verdict with refusals, a line for each; at most kMostRefusals of them, and how many more there are.
inline constexpr std::size_t kMostRefusals = 40;
Result<void> result_of(const AdmissionVerdict& verdict);

}  // namespace berth::control
