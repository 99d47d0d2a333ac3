#pragma once
// The checks of a job at submission. Each error names the field and says what would be right.

#include <string>

#include "base/result.h"
#include "model/job.h"
#include "model/job_check.h"
#include "state/state.h"

namespace berth::control {

using berth::kMaxSeconds;

// Returns an error, with a line for each mistake, if the submission is malformed or refers to something that the
// configuration or the nodes do not have: a queue, pool, GPU model or topology level, or containers. A request that is
// larger than the fleet is no error, because nodes may join later. With `updates`, the submission updates a service,
// and the limit on submitted jobs per user does not apply.
Result<void> validate(const state::State& state, const JobSpec& spec, bool updates = false);

// Replaces each MIG profile in `spec` by the share of a GPU that it stands for. Error: the profile is unknown here, or
// it is a different share on several GPU models. In the second case the job may name one model in gpu_models; an
// updated service keeps the share that it has.
Result<void> resolve_mig_profiles(const state::State& state, JobSpec& spec, const state::JobState* updated);

// Gives each task group without an image the default image of its queue, if nodes here run containers.
void fill_default_images(const state::State& state, JobSpec& spec);

// The signal that ends an interactive job is SIGHUP, as of a terminal that is closed: shells do not heed SIGTERM.
void settle_stop_signal(JobSpec& spec);

// Returns the only leaf queue, for a job that names no queue. Error, with a list of leaf queues: there are several.
Result<std::string> only_queue(const state::State& state);

// Returns the error for a dependency on a job that is not known, also to one who may not see it.
Error no_such_dependency(JobId job);

// Returns the priority of the priority class of the job, or of the default class if it names none. Error: no such
// class.
Result<std::int32_t> priority_of(const state::State& state, const JobSpec& spec);

}  // namespace berth::control
