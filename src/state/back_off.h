#pragma once
// Who comes to its own end again and again, soon after its start, is tried again after ever longer pauses: 1 s, 2 s,
// 4 s ... 5 min. That alone would let it stop others at every try. So it may stop others only when sixteen such pauses
// have passed since its last end; until then it starts where GPUs are idle.
//
// Whoever loses the places that it was promised, for whatever reason, may claim at once only the first time: then after
// 10 s, 20 s, 40 s ... So nobody stops others in vain for ever, whatever it is that stands between a promise and its
// places (others may start meanwhile whom it has to stand away from): in a time T it is about log T times.

#include <cstdint>

#include "state/job_state.h"

namespace berth::state {

// The pause after its last end.
std::int64_t back_off_ms(const JobState& job);

// The pause after so many promises were lost in a row.
std::int64_t pause_after_lost_nominations_ms(std::uint32_t lost);

// From when on the waiting job may stop others; 0: at any time.
Timestamp may_evict_from(const JobState& job);

}  // namespace berth::state
