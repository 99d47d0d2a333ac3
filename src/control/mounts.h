#pragma once
// The checks of what a job mounts, at its submission: what its queue has. The rest is model/mount_check.h.

#include <vector>

#include "base/result.h"
#include "model/job.h"
#include "state/state.h"

namespace berth::control {

// Returns true if a node of this cluster runs containers.
bool runs_containers(const state::State& state);

// Returns an error for each volume and secret that the queue of the job does not have, or that cannot be had here.
// Requires: check_job_alone has told what is wrong with their number.
std::vector<Error> check_mounts(const state::State& state, const JobSpec& spec);

}  // namespace berth::control
