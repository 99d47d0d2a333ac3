#pragma once
// Services: a replica for each number below the count, made of the service's present version.
//
// A service that is submitted again under its name is updated: replicas of the old version are replaced one after the
// other, never more of them away at once than `max_unavailable` (1 where it is not stated), a new one counting until it
// has served for a while; and no further once a replica of the new version has failed. Replicas on nodes that drain
// leave within the same limit.

#include "control/batch.h"

namespace berth::control {

// The live service that a submission of this spec would update, or null.
const state::JobState* service_to_update(const state::State& state, const JobSpec& spec);

// Whether replicas of both specs are the same, so that the service need not replace any.
bool same_replicas(const JobSpec& before, const JobSpec& after);

// What a replica of the service runs.
JobSpec replica_spec(const JobSpec& service, std::int32_t index);

void reconcile_service(Batch& batch, JobId service);

}  // namespace berth::control
