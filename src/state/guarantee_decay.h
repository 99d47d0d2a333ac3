#pragma once
// Use it or lose it: a guarantee that is not used counts for less. What a queue asks for is what is bound below it and,
// at least, what waits there, borrowed or not.
//
// 1. A queue is idle while it asks for no more than half of what is guaranteed to it: of each kind of GPU that its
//    guarantee states, or, where it states none, of everything that it states.
// 2. After a window of being idle without interruption it loses half of what it did not ask for at any time in it, in
//    whole GPUs and cores; after another one half of the rest, and so on. So it never loses what it uses.
// 3. After a window of asking for more than what is left, without interruption, it has all again that is configured.
// 4. Nobody is stopped for it. What is lost can no longer be claimed back from those who borrow it.
//
// Borg moves its reservations in the same directions: slowly down to what is used, fast up when more is needed (Verma
// et al., EuroSys'15, section 5.5).

#include "model/cluster_config.h"
#include "state/queue_state.h"
#include "state/state.h"

namespace berth::state {

// What a waiting job counts: its least size, and a GPU model where it names a single one.
Amounts demand_of(const State& state, const JobSpec& spec);

bool is_idle(const QueueState& queue, const Amounts& load);
bool wants_more(const QueueState& queue, const Amounts& load);

// What is left when the window of being idle is over.
QuotaAmounts guarantee_after_idling(const QueueState& queue);

// When the guarantee changes if nothing else does, and whether it is restored then.
struct GuaranteeDue {
  Timestamp at = Timestamp::never();
  bool restored = false;
};
GuaranteeDue guarantee_due(const QueueState& queue);

// The guarantee by name, as events and documents have it.
ResourceAmounts named(const State& state, const QuotaAmounts& guarantee);

}  // namespace berth::state
