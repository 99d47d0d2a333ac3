#pragma once
// Order: which waiting job is asked next. From the root down, the most deserving child: one whose next job would lie
// within its guarantee before one that would borrow, then the smaller dominant share over weight, then the job's own
// priority and age. A total order; no ties are left open.

#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "base/timestamp.h"
#include "model/ids.h"
#include "state/state.h"

namespace berth::sched {

// Walks all waiting jobs of one cycle, each at most once, always by the order of the moment.
class Order {
 public:
  Order(const state::State& state, Timestamp now);

  // The next job to ask, or nothing when all have been asked.
  std::optional<JobId> next();
  // No further job of this leaf is asked in this cycle (strict queues whose head is blocked).
  void close(QueueId leaf);

 private:
  struct Candidate {
    JobId job;
    std::int64_t negated_priority = 0;
    Timestamp submitted;
  };
  std::optional<Candidate> head(QueueId queue);
  std::optional<Candidate> leaf_head(const state::QueueState& leaf);

  const state::State& state_;
  Timestamp now_;
  std::map<QueueId, std::set<state::PendingKey>::const_iterator> cursors_;
  std::set<QueueId> exhausted_;
};

}  // namespace berth::sched
