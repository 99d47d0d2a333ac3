#include "state/within.h"

namespace berth::state {

bool is_within_all(const State& state, QueueId queue, std::uint64_t within) {
  const std::uint64_t path = ((std::uint64_t{1} << state.queue(queue).depth) - 1) << 1U;  // without the root
  return (within & path) == path;
}

// What is inside the queue's own guarantee, without what is borrowed at a queue above. Such a charge is counted at the
// lowest of these queues.
Amounts usage_within_all(const State& state, const QueueState& queue) {
  Amounts within = queue.within_usage;
  if (within.is_zero()) return within;
  std::uint64_t inside = std::uint64_t{1} << queue.depth;  // the queues between that one and `queue`, and `queue`
  for (QueueId above = queue.parent; above.valid() && above != state.root(); above = state.queue(above).parent) {
    const QueueState& at = state.queue(above);
    for (const BorrowedKey& key : at.borrowed) {
      const JobState& job = *state.job(key.job);
      const Charge& charge = job.attempt->charges[key.charge];
      if ((charge.within & inside) == inside && state.is_below(job.queue, queue.id)) within -= charge.amounts;
    }
    inside |= std::uint64_t{1} << at.depth;
  }
  return within;
}

}  // namespace berth::state
