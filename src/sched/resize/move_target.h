#pragma once
// MoveTarget: new places for a running job that an operator moves (control/move.h). They are free now, beside
// nominations and backfill reservations. They are in the job's pool, and on none of the nodes that it is to leave or
// that have maintenance planned. A job within a guarantee stays within it. Scaled-up tasks of an elastic gang get no
// places: the gang scales up again after it has started.

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
  // Searches. Until this object ends the state stays as the search left it: the job removed, other nodes cordoned. So a
  // refusal can be explained by the state that caused it.
  MoveTarget(state::State& state, JobId job, const std::vector<NodeId>& off, Timestamp now);

  // The places of all tasks; nothing if `why` refuses or the job would borrow there.
  const std::optional<std::vector<TaskPlacement>>& places() const { return places_; }
  // Why the job does not fit; none() if it fits.
  const Reason& why() const { return why_; }
  // True if the job fits but would borrow there, and it is within its guarantee now.
  bool would_borrow() const { return would_borrow_; }

 private:
  state::Transaction transaction_;
  std::optional<std::vector<TaskPlacement>> places_;
  Reason why_;
  bool would_borrow_ = false;
};

}  // namespace berth::sched
