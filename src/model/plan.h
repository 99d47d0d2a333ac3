#pragma once
// A plan: what one scheduling cycle decided, in that order. control::commit turns it into events.
//
// The hash of a plan (control::plan_hash) is stored in the log, so a replay checks itself. It follows from this file:
// from kNumber of each decision and from its fields, in their order. Every member has to be listed (a check at compile
// time); what the hash leaves out is listed as unhashed.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/fields.h"
#include "base/timestamp.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/job.h"
#include "model/reason.h"

namespace berth {

// A field that the hash of a plan leaves out.
template <class Struct, class Member>
struct UnhashedField : Field<Struct, Member> {};

template <class Struct, class Member>
constexpr UnhashedField<Struct, Member> unhashed(std::string_view name, Member Struct::*member) {
  return {field(name, member)};
}

// Start a pending job at these places.
struct StartDecision {
  JobId job;
  std::vector<TaskPlacement> placements;

  static constexpr std::uint64_t kNumber = 0;
  static constexpr auto fields() {
    return field_list(field("job", &StartDecision::job), field("placements", &StartDecision::placements));
  }
};
// Scale up an elastic gang by tasks at these places.
struct GrowDecision {
  JobId job;
  std::vector<TaskPlacement> placements;

  static constexpr std::uint64_t kNumber = 1;
  static constexpr auto fields() {
    return field_list(field("job", &GrowDecision::job), field("placements", &GrowDecision::placements));
  }
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

  static constexpr std::uint64_t kNumber = 2;
  static constexpr auto fields() {
    return field_list(field("preemptor", &EvictDecision::preemptor), field("placements", &EvictDecision::placements),
                      field("victims", &EvictDecision::victims), unhashed("causes", &EvictDecision::causes),
                      field("keeps", &EvictDecision::keeps), unhashed("cause", &EvictDecision::cause),
                      field("within", &EvictDecision::within));
  }
};
// Move jobs to other places, reserved for them, so that the preemptor fits. The preemptor is nominated for its own
// places.
struct Move {
  JobId job;
  std::vector<TaskPlacement> to;

  static constexpr auto fields() { return field_list(field("job", &Move::job), field("to", &Move::to)); }
};
struct MoveDecision {
  JobId preemptor;
  std::vector<TaskPlacement> placements;
  std::vector<Move> moves;
  std::uint64_t within = ~std::uint64_t{0};  // as in Nominated

  static constexpr std::uint64_t kNumber = 9;
  static constexpr auto fields() {
    return field_list(field("preemptor", &MoveDecision::preemptor), field("placements", &MoveDecision::placements),
                      field("moves", &MoveDecision::moves), field("within", &MoveDecision::within));
  }
};
// Stop a job for a cause of its own (drain, maintenance), without a preemptor.
struct StopDecision {
  JobId job;
  StopCause cause = StopCause::kDrain;

  static constexpr std::uint64_t kNumber = 3;
  static constexpr auto fields() {
    return field_list(field("job", &StopDecision::job), unhashed("cause", &StopDecision::cause));
  }
};
// Withdraw the nomination of a job.
struct DropNominationDecision {
  JobId job;
  std::string why;

  static constexpr std::uint64_t kNumber = 4;
  static constexpr auto fields() {
    return field_list(field("job", &DropNominationDecision::job), unhashed("why", &DropNominationDecision::why));
  }
};

// Give a blocked job a backfill reservation at these places for this start time.
struct ReserveDecision {
  JobId job;
  std::vector<TaskPlacement> placements;
  Timestamp start;

  static constexpr std::uint64_t kNumber = 6;  // 5 was a decision that no plan had
  static constexpr auto fields() {
    return field_list(field("job", &ReserveDecision::job), field("start", &ReserveDecision::start),
                      field("placements", &ReserveDecision::placements));
  }
};
// Drop the backfill reservation of a job.
struct DropReservationDecision {
  JobId job;
  std::string why;

  static constexpr std::uint64_t kNumber = 7;
  static constexpr auto fields() {
    return field_list(field("job", &DropReservationDecision::job), unhashed("why", &DropReservationDecision::why));
  }
};

// Record that the search found fewer backfill reservations than allowed, so that not every cycle searches again.
struct SeekDecision {
  std::int32_t held = 0;

  static constexpr std::uint64_t kNumber = 8;
  static constexpr auto fields() { return field_list(field("held", &SeekDecision::held)); }
};

using Decision = std::variant<StartDecision, GrowDecision, EvictDecision, StopDecision, DropNominationDecision,
                              ReserveDecision, DropReservationDecision, SeekDecision, MoveDecision>;

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
