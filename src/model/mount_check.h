#pragma once
// What must hold of a job's mounts, secrets and directories in volumes whatever its queue has (control/mounts.h).

#include <vector>

#include "base/result.h"
#include "model/job.h"

namespace berth {

// Returns an error for each place that is malformed or taken, each path that leads out of its volume, and each amount
// that cannot be. Messages begin with the path of the key.
std::vector<Error> check_mounts_alone(const JobSpec& spec);

}  // namespace berth
