#pragma once
// A plan: what one scheduling cycle decided, in the order in which it was decided. control::commit turns it into
// events.

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

struct StartDecision {
  JobId job;
  std::vector<TaskPlacement> placements;
};
struct GrowDecision {
  JobId job;
  std::vector<TaskPlacement> placements;
};
// Stop the victims for the claimant and promise it the places.
struct EvictDecision {
  JobId preemptor;
  std::vector<TaskPlacement> placements;
  std::vector<JobId> victims;
  std::vector<StopCause> causes;             // of each victim: reclaim or preempt
  std::vector<std::uint32_t> keeps;          // of each victim: so many tasks stay; 0: all of it leaves
  StopCause cause = StopCause::kReclaim;     // of the nomination: preempt, if any victim is preempted
  std::uint64_t within = ~std::uint64_t{0};  // as in Nominated
};
// Ask jobs to leave for other places, which are kept for them, so that the claimant fits; it is promised its own.
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
// Stop a job for a reason of its own (drain, maintenance); no claimant.
struct StopDecision {
  JobId job;
  StopCause cause = StopCause::kDrain;
};
struct DropNominationDecision {
  JobId job;
  std::string why;
};
// A service, array or the like needs this child to exist before it can start.
struct SpawnDecision {
  JobId parent;
  std::int32_t index = 0;
};

// Promise a blocked job a start at that time on those places.
struct ReserveDecision {
  JobId job;
  std::vector<TaskPlacement> placements;
  Timestamp start;
};
struct DropReservationDecision {
  JobId job;
  std::string why;
};

// Fewer starts could be held than there are holds: remembered, so that they are not looked for in every cycle.
struct SeekDecision {
  std::int32_t held = 0;
};

using Decision = std::variant<StartDecision, GrowDecision, EvictDecision, StopDecision, DropNominationDecision,
                              SpawnDecision, ReserveDecision, DropReservationDecision, SeekDecision, MoveDecision>;

struct Plan {
  std::vector<Decision> decisions;
  std::vector<std::pair<JobId, Reason>> refused;  // asked and not started; stands for all of its queue and shape
  std::uint64_t starts_worked_out = 0;            // searches for the earliest start of a blocked job
  Timestamp reevaluate_at = Timestamp::never();   // then a refused job may claim victims that are too young now
  std::uint64_t scheduling_attempts = 0;          // work counters, for tests and metrics
  std::uint64_t nodes_scored = 0;
  std::uint64_t classes_probed = 0;  // lanes whose first job was looked at because they were awake or something changed
  std::uint64_t classes_resumed = 0;  // lanes that were sent back to sleep without that
  std::uint64_t classes_walked = 0;   // lanes that were looked at to find whom a start could be held for
};

}  // namespace berth
