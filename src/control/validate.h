#pragma once
// What must hold of a job before it is accepted. The error names the field and what would be right.

#include <string>

#include "base/result.h"
#include "model/job.h"
#include "state/state.h"

namespace berth::control {

inline constexpr std::int64_t kMaxSeconds = 366LL * 86'400;

// Checks a submission against the configuration in force; what it asks of hardware that is not there yet is no error.
// One that updates a service is no job more for its user.
Result<void> validate(const state::State& state, const JobSpec& spec, bool updates = false);

// Writes out what the MIG profiles of the groups stand for: the share of a GPU. Where a profile is another share of one
// model than of the next, the job says which, by its GPUs or models; or, of a service that is updated, what it has now.
Result<void> settle_mig_profiles(const state::State& state, JobSpec& spec, const state::JobState* updated);

// The queue a job that names none is charged to: the only leaf of the tree. With several, the error lists them.
Result<std::string> only_queue(const state::State& state);

// The priority its class stands for, or the default class's.
Result<std::int32_t> priority_of(const state::State& state, const JobSpec& spec);

}  // namespace berth::control
