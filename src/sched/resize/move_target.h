#pragma once
// MoveTarget: places where a running job could start again that an operator moves (control/move.h). They are free now,
// beside nominations and backfill reservations, in the job's own pool, and on none of the nodes that it is to leave. No
// node for which maintenance is planned is taken. A job within a guarantee stays within it there. Tasks above min_count
// of an elastic gang get no places: the gang scales up again after it has started.

#include <optional>
#include <vector>

#include "base/timestamp.h"
#include "model/ids.h"
#include "model/job.h"
#include "model/reason.h"
#include "state/state.h"
#include "state/transaction.h"

namespace berth::sched {

class MoveTarget {
 public:
  // Searches. The state stays as the search left it, with the job removed and other nodes cordoned, until this object
  // ends: so the refusal can be explained by the state that refused.
  MoveTarget(state::State& state, JobId job, const std::vector<NodeId>& off, Timestamp now);

  // The places of every task, or nothing where `why` refuses or the job would borrow there.
  const std::optional<std::vector<TaskPlacement>>& places() const { return places_; }
  // Why the job does not fit; none() where it fits.
  const Reason& why() const { return why_; }
  // It fits, but is within its guarantee now and would borrow there.
  bool would_borrow() const { return would_borrow_; }

 private:
  state::Transaction transaction_;
  std::optional<std::vector<TaskPlacement>> places_;
  Reason why_;
  bool would_borrow_ = false;
};

}  // namespace berth::sched
