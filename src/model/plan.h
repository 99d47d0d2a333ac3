#pragma once
// A plan: what one scheduling cycle decided, in that order. control::commit turns it into events.

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/timestamp.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/job.h"
#include "model/reason.h"

namespace berth {

// Start a pending job at these places.
struct StartDecision {
  JobId job;
  std::vector<TaskPlacement> placements;
};
// Scale up an elastic gang by tasks at these places.
struct GrowDecision {
  JobId job;
  std::vector<TaskPlacement> placements;
};
// Evict the victims and nominate the preemptor for the places.
struct EvictDecision {
  JobId preemptor;
  std::vector<TaskPlacement> placements;
  std::vector<JobId> victims;
  std::vector<StopCause> causes;             // for each victim: reclaim or preempt
  std::vector<std::uint32_t> keeps;          // for each victim: number of tasks that stay; 0: the whole job stops
  StopCause cause = StopCause::kReclaim;     // of the nomination: preempt if any victim is preempted
  std::uint64_t within = ~std::uint64_t{0};  // as in Nominated
};
// Move jobs to other places, reserved for them, so that the preemptor fits. The preemptor is nominated for its own
// places.
struct Move {
  JobId job;
  std::vector<TaskPlacement> to;
};
struct MoveDecision {
  JobId preemptor;
  std::vector<TaskPlacement> placements;
  std::vector<Move> moves;
  std::uint64_t within = ~std::uint64_t{0};  // as in Nominated
};
// Stop a job for a cause of its own (drain, maintenance), without a preemptor.
struct StopDecision {
  JobId job;
  StopCause cause = StopCause::kDrain;
};
// Withdraw the nomination of a job.
struct DropNominationDecision {
  JobId job;
  std::string why;
};
// Not used: control ignores it. It would create a child of a service or an array.
struct SpawnDecision {
  JobId parent;
  std::int32_t index = 0;
};

// Give a blocked job a backfill reservation at these places for this start time.
struct ReserveDecision {
  JobId job;
  std::vector<TaskPlacement> placements;
  Timestamp start;
};
// Drop the backfill reservation of a job.
struct DropReservationDecision {
  JobId job;
  std::string why;
};

// Record that the search found fewer backfill reservations than allowed, so that not every cycle searches again.
struct SeekDecision {
  std::int32_t held = 0;
};

using Decision = std::variant<StartDecision, GrowDecision, EvictDecision, StopDecision, DropNominationDecision,
                              SpawnDecision, ReserveDecision, DropReservationDecision, SeekDecision, MoveDecision>;

struct Plan {
  std::vector<Decision> decisions;
  std::vector<std::pair<JobId, Reason>> refused;  // evaluated and not started; stands for its whole equivalence class
  std::uint64_t starts_worked_out = 0;            // searches for the earliest start of a blocked job
  Timestamp reevaluate_at = Timestamp::never();   // when a cycle may decide more even if nothing changes
  std::uint64_t scheduling_attempts = 0;          // from here on: work counters, for tests and metrics
  std::uint64_t nodes_scored = 0;
  // Classes whose first job was evaluated because they were active or something changed.
  std::uint64_t classes_probed = 0;
  std::uint64_t classes_resumed = 0;  // signalled classes that were parked again without that
  std::uint64_t classes_walked = 0;   // classes that backfill looked at for possible reservations
};

}  // namespace berth
