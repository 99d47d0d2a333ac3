#pragma once
// The budgets and grants of a configuration that is to be put in force, against what was used already.

#include "api/service.h"
#include "base/result.h"
#include "model/cluster_config.h"

namespace berth::api {

// Refuses a budget or grant that is below what its queue has used already in its period, and a grant that has ended
// already. What is in force stays: only one that is new, lower, or of another period is looked at, under the name that
// its queue has now. Reads the log.
Result<void> check_new_budgets(Service& service, const ClusterConfig& config);

}  // namespace berth::api
