#pragma once
// Guarantee decay: a guarantee that is not used shrinks by halves. The load of a queue is the usage below it plus the
// least requests of the jobs that are pending below it. Borrowed usage counts too.
//
// 1. A queue is idle while its load is at most half of its guarantee. Only the GPU dimensions that the guarantee states
//    are compared. If it states no GPUs, all dimensions that it states are compared.
// 2. After a queue has been idle for one window without interruption, it loses half of the part above its peak load in
//    that window. The loss is in whole GPUs and cores. After each further idle window it loses half of the rest. So it
//    never loses what it uses.
// 3. After one window in which its load was above the remaining guarantee without interruption, the configured
//    guarantee is restored.
// 4. No job is evicted for it. The queue can no longer reclaim the lost part from jobs that borrow it.
//
// Borg moves its reservations in the same directions: slowly down to what is used, fast up when more is needed (Verma
// et al., EuroSys'15, section 5.5).

#include "model/cluster_config.h"
#include "state/queue_state.h"
#include "state/state.h"

namespace berth::state {

// Returns what a pending job adds to the load of its queues: its least size (min_count). A GPU model counts only where
// a task group names exactly one.
Amounts demand_of(const State& state, const JobSpec& spec);

// Return true if the load makes the queue idle (rule 1); if it is above the remaining guarantee, and that is below the
// configured one (rule 3).
bool is_idle(const QueueState& queue, const Amounts& load);
bool wants_more(const QueueState& queue, const Amounts& load);

// Returns the guarantee that is left at the end of the current idle window (rule 2).
QuotaAmounts guarantee_after_idling(const QueueState& queue);

// When the guarantee of a queue changes next if its load stays the same, and whether it is then restored; never() if no
// change is due.
struct GuaranteeDue {
  Timestamp at = Timestamp::never();
  bool restored = false;
};
GuaranteeDue guarantee_due(const QueueState& queue);

// Returns the guarantee with resource names, as events and documents write it.
ResourceAmounts named(const State& state, const QuotaAmounts& guarantee);

}  // namespace berth::state
