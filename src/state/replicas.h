#pragma once
// The replicas of a service: which of them serve, and how many may be away. A replica is available when all its tasks
// run and nothing has asked it to leave. `max_unavailable` bounds how many may be away through what operators and
// updates do; what fails or is lost counts as away, but is nobody's choice.

#include <cstdint>

#include "state/state.h"

namespace berth::state {

bool is_available(const JobState& replica);

// A replica that has run so long may be relied on: an update goes on to the next. Who has failed before has more to
// prove.
inline constexpr std::int64_t kReliableAfterMs = 10'000;
inline constexpr std::int64_t kReliableAfterFailureMs = 600'000;
Timestamp reliable_from(const JobState& replica);  // it has an attempt
bool is_reliable(const JobState& replica, Timestamp now);

// Of the count that the service asks; also those that are not made yet.
std::int32_t unavailable_replicas(const State& state, const JobState& service);

// The live service that the job is a replica of, or null.
const JobState* service_of(const State& state, const JobState& job);

// Whether the replica may be asked to leave by choice: its service states no limit, or would keep it.
bool may_leave_by_choice(const State& state, const JobState& replica);

}  // namespace berth::state
