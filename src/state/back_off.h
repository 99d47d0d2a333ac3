#pragma once
// Who comes to its own end again and again, soon after its start, is tried again after ever longer pauses: 1 s, 2 s,
// 4 s ... 5 min. That alone would let it stop others at every try. So it may stop others only when sixteen such pauses
// have passed since its last end; until then it starts where GPUs are idle.

#include <cstdint>

#include "state/job_state.h"

namespace berth::state {

// The pause after its last end.
std::int64_t back_off_ms(const JobState& job);

// From when on the waiting job may stop others; 0: at any time.
Timestamp may_claim_from(const JobState& job);

}  // namespace berth::state
