#pragma once
// Services: keeps one replica for each index below the count, with the current version of the spec.
//
// A submission under the name of a live service updates it: replicas of the old version are replaced by new ones.
// 1. At most `max_unavailable` replicas (1 if not stated) are away at once. A new replica counts as away until it has
//    run for a while (kReliableAfterMs). An old replica that does not serve is replaced at once.
// 2. The update pauses while a new replica that has failed has not run long enough again (kReliableAfterFailureMs).
// 3. Replicas on draining nodes are asked to leave within the same limit; without a stated limit, all at once.

#include "control/batch.h"

namespace berth::control {

// Returns the live service that a submission of `spec` would update, or null: same name, queue and user.
const state::JobState* service_to_update(const state::State& state, const JobSpec& spec);

// Returns true if both specs give the same replicas, so that an update need not replace any.
bool same_replicas(const JobSpec& before, const JobSpec& after);

// Returns the spec of the replica with this index.
JobSpec replica_spec(const JobSpec& service, std::int32_t index);

void reconcile_service(Batch& batch, JobId service);

}  // namespace berth::control
