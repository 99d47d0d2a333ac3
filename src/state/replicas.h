#pragma once
// The replicas of a service: which of them are available, and how many may be unavailable. A replica is available when
// all its tasks run and it was not asked to stop. `max_unavailable` limits how many operators and updates may make
// unavailable at once. Replicas that failed or were lost count as unavailable too, although no limit can prevent that.

#include <cstdint>

#include "state/state.h"

namespace berth::state {

bool is_available(const JobState& replica);

// A replica that has run this long is reliable, and an update then continues with the next one. A replica that has
// failed before has to run longer.
inline constexpr std::int64_t kReliableAfterMs = 10'000;
inline constexpr std::int64_t kReliableAfterFailureMs = 600'000;
Timestamp reliable_from(const JobState& replica);  // requires an attempt
bool is_reliable(const JobState& replica, Timestamp now);

// Returns how many of the replicas that the service asks for are not available. Replicas that do not exist yet count.
std::int32_t unavailable_replicas(const State& state, const JobState& service);

// Returns the live service that the job is a replica of, or null.
const JobState* service_of(const State& state, const JobState& job);

// Returns true if an operator or an update may stop the replica: fewer than max_unavailable replicas are unavailable
// now. Also true if the replica itself is not available, its service states no limit, or the job is no replica.
bool may_leave_by_choice(const State& state, const JobState& replica);

}  // namespace berth::state
