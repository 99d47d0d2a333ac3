#pragma once
// Back-off: the pauses before a job is retried, and before it may preempt or reclaim again.
//
// 1. A job that ends by itself again and again, each time soon after its start, is retried after growing pauses: 1 s, 2
//    s, 4 s ... 5 min. An attempt ends by itself unless it was evicted or its node was lost. A supervisor that dies
//    while its machine goes on, and a machine without the means to start a task, count as well: they use up no retry,
//    but a pause is due. A job whose supervisors die again and again fails in the end, because it may kill them itself.
// 2. Such a job may preempt or reclaim only after sixteen such pauses since its last end. Until then it starts only on
//    idle GPUs. Without this rule it would evict other jobs at every retry.
// 3. A job whose nomination was withdrawn may preempt or reclaim again at once the first time, then after 10 s, 20 s,
//    40 s ... In a time T it evicts in vain about log T times, whatever keeps it from its nominated places. An example
//    is a job that starts meanwhile and that it must not run beside (anti-affinity).

#include <cstdint>

#include "state/job_state.h"

namespace berth::state {

// Returns the pause after the last attempt of the job (rule 1), in milliseconds.
std::int64_t back_off_ms(const JobState& job);

// Returns how often in a row the supervisor of the job has died soon after the start, if it does so now once more.
std::int32_t supervisor_deaths(const JobState& job, Timestamp now);

// Returns the pause before a job may preempt again, in milliseconds, after `lost` of its nominations in a row were
// withdrawn.
std::int64_t pause_after_lost_nominations_ms(std::uint32_t lost);

// Returns the time from which the pending job may preempt or reclaim (rules 2 and 3); time 0 means at once.
Timestamp may_evict_from(const JobState& job);

}  // namespace berth::state
