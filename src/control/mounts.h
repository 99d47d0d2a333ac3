#pragma once
// The checks of what a job mounts, at its submission.

#include <vector>

#include "base/result.h"
#include "model/job.h"
#include "state/state.h"

namespace berth::control {

// Returns true if a node of this cluster runs containers.
bool runs_containers(const state::State& state);

// Returns an error for each mount, secret and directory that the queue of the job does not have, that cannot be had
// here, or whose path is malformed or taken.
std::vector<Error> check_mounts(const state::State& state, const JobSpec& spec);

}  // namespace berth::control
