#pragma once
// A live job as the state holds it: what was submitted, where it is in its life, and its current attempt.
//
//   pending --AttemptStarted--> running --StopBegan--> stopping --AttemptEnded--> pending (JobRequeued)
//      |                           '----AttemptEnded----'                      '-> finished (JobFinished)
//      |                   stopping --AttemptShrunk--> running, with fewer tasks (an elastic gang)
//      '--JobFinished (cancelled, or a dependency that can never hold)
//
// Diagram and table of the transitions: docs/job-states.md.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/checked.h"
#include "base/timestamp.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/job.h"
#include "model/resources.h"
#include "state/queue_state.h"

namespace berth::state {

// The marks `within` of two charges, from the top of the tree: whoever is within where the other borrows stands higher.
// The root has no guarantee to be outside of.
inline bool is_higher(std::uint64_t within, std::uint64_t other) {
  const std::uint64_t differing = (within ^ other) & ~std::uint64_t{1};
  return (within & differing & -differing) != 0;
}

// What one event bound and what it counts against quota. Bit d of `within`: inside the guarantee of the ancestor queue
// at depth d. `order` is the sequence number of the binding event: charges stack in the order of their start.
struct Charge {
  Amounts amounts;
  std::uint64_t within = 0;
  Seq order = 0;
  std::uint32_t first_task = 0;
  std::uint32_t tasks = 0;
  std::optional<Amounts> burst;  // the part of the amounts that is in burst pools; such a charge is within nowhere
  static constexpr auto fields() {
    return field_list(field("amounts", &Charge::amounts), field("within", &Charge::within),
                      field("order", &Charge::order), field("first_task", &Charge::first_task),
                      field("tasks", &Charge::tasks), field("burst", &Charge::burst));
  }
};

struct TaskState {
  TaskPlacement placement;
  TaskPhase phase = TaskPhase::kBound;
  std::uint32_t incarnation = 1;
  ExitReason reason = ExitReason::kExited;
  std::int32_t code = 0;
  static constexpr auto fields() {
    return field_list(field("placement", &TaskState::placement), field("phase", &TaskState::phase),
                      field("incarnation", &TaskState::incarnation), field("reason", &TaskState::reason),
                      field("code", &TaskState::code));
  }
};

struct Stop {
  StopCause cause = StopCause::kUser;
  JobId preemptor;
  Timestamp began;
  Timestamp deadline;
  bool acknowledged = false;
  bool forced = false;
  std::uint32_t exited_before = 0;  // tasks that were over when the stop began
  std::uint32_t keep = 0;           // so many tasks go on; 0: all of it stops
  std::vector<TaskPlacement> to;    // consolidate and move: where it starts again; kept for it
  static constexpr auto fields() {
    return field_list(field("cause", &Stop::cause), field("preemptor", &Stop::preemptor), field("began", &Stop::began),
                      field("deadline", &Stop::deadline), field("acknowledged", &Stop::acknowledged),
                      field("forced", &Stop::forced), field("exited_before", &Stop::exited_before),
                      field("keep", &Stop::keep), field("to", &Stop::to));
  }
};

struct AttemptState {
  std::uint32_t number = 0;
  Timestamp started;
  std::vector<TaskState> tasks;
  std::vector<Charge> charges;
  std::int32_t master_port = 0;
  std::uint32_t exited = 0;  // tasks that are over
  bool signalled = false;    // was asked to stop at least once: leaving is then no failure
  std::optional<Stop> stop;
  std::int64_t checkpoint_step = 0;
  std::optional<Timestamp> checkpoint_at;
  std::string first_failure;  // message of the first task that failed
  std::int32_t failure_code = 0;
  Timestamp resized;                        // when its size last changed: the start, a step of growth, a shrink
  std::uint32_t shrinks = 0;                // so often it has shrunk: what grows later is another incarnation
  std::optional<Timestamp> reserved_start;  // when the first hold of its wait said that it would start
  std::int64_t grace_used_ms = 0;           // of what it was given, up to then
  Timestamp eviction_cancelled_at;          // when it was let off; while it is asked to stop, when that began

  bool all_exited() const { return exited == tasks.size(); }
  // It gives back its last tasks and goes on with the others.
  bool shrinking() const { return stop && stop->keep > 0; }
  // The whole of it was asked to stop.
  bool stopping() const { return stop && stop->keep == 0; }
  // Tasks beyond these were added to the least counts and can be given back.
  std::uint32_t base_tasks() const { return charges.front().tasks; }
  static constexpr auto fields() {
    return field_list(
        field("number", &AttemptState::number), field("started", &AttemptState::started),
        field("tasks", &AttemptState::tasks), field("charges", &AttemptState::charges),
        field("master_port", &AttemptState::master_port), field("exited", &AttemptState::exited),
        field("signalled", &AttemptState::signalled), field("stop", &AttemptState::stop),
        field("checkpoint_step", &AttemptState::checkpoint_step), field("checkpoint_at", &AttemptState::checkpoint_at),
        field("first_failure", &AttemptState::first_failure), field("failure_code", &AttemptState::failure_code),
        field("resized", &AttemptState::resized), field("shrinks", &AttemptState::shrinks),
        field("reserved_start", &AttemptState::reserved_start), field("grace_used_ms", &AttemptState::grace_used_ms),
        field("eviction_cancelled_at", &AttemptState::eviction_cancelled_at));
  }
};

// One past attempt, for the job's story.
struct AttemptRecord {
  std::uint32_t number = 0;
  Timestamp waited_from;
  Timestamp started;
  Timestamp ended;
  Outcome outcome = Outcome::kSucceeded;
  std::optional<StopCause> cause;
  JobId preemptor;
  std::int32_t code = 0;
  std::string message;
  std::int64_t checkpoint_step = 0;
  std::vector<std::pair<NodeId, std::int32_t>> gpus_on;  // node and how many GPUs
  std::optional<Timestamp> reserved_start;
  std::uint64_t within = 0;  // as Charge::within: what all of it had when it ended
  static constexpr auto fields() {
    return field_list(field("number", &AttemptRecord::number), field("waited_from", &AttemptRecord::waited_from),
                      field("started", &AttemptRecord::started), field("ended", &AttemptRecord::ended),
                      field("outcome", &AttemptRecord::outcome), field("cause", &AttemptRecord::cause),
                      field("preemptor", &AttemptRecord::preemptor), field("code", &AttemptRecord::code),
                      field("message", &AttemptRecord::message),
                      field("checkpoint_step", &AttemptRecord::checkpoint_step),
                      field("gpus_on", &AttemptRecord::gpus_on),
                      field("reserved_start", &AttemptRecord::reserved_start), field("within", &AttemptRecord::within));
  }
};

struct Nomination {
  std::vector<TaskPlacement> placements;
  std::vector<JobId> victims;
  StopCause cause = StopCause::kReclaim;
  Amounts amounts;
  std::uint64_t within = ~std::uint64_t{0};  // bit d: room of the guarantee at depth d is kept for it
  std::vector<std::uint32_t> keeps;          // so many tasks of each victim go on; empty: all of them stop

  // Of its victim so many tasks go on, and what they have done is not lost; 0: all of it stops.
  std::uint32_t keep_of(std::size_t victim) const { return keeps.empty() ? 0 : keeps[victim]; }
  // Others move for the claimant; and, without any: it has itself left other places to start at these.
  bool is_by_moves() const { return cause == StopCause::kConsolidate && !victims.empty(); }
  bool has_moved() const { return is_move(cause) && victims.empty(); }
  static constexpr auto fields() {
    return field_list(field("placements", &Nomination::placements), field("victims", &Nomination::victims),
                      field("cause", &Nomination::cause), field("amounts", &Nomination::amounts),
                      field("within", &Nomination::within), field("keeps", &Nomination::keeps));
  }
};

// Places that are held for a blocked job until its expected start (backfill).
struct BackfillReservation {
  std::vector<TaskPlacement> placements;
  Timestamp start;
  Timestamp worked_out;
  Timestamp first_start;  // what the first hold of this wait said
  static constexpr auto fields() {
    return field_list(
        field("placements", &BackfillReservation::placements), field("start", &BackfillReservation::start),
        field("worked_out", &BackfillReservation::worked_out), field("first_start", &BackfillReservation::first_start));
  }
};

inline constexpr std::uint32_t kNoRow = std::numeric_limits<std::uint32_t>::max();

struct JobState {
  JobId id;
  QueueId queue;
  std::int32_t priority = 0;
  JobPhase phase = JobPhase::kPending;
  bool held = false;
  bool cancel_requested = false;
  Timestamp submitted;
  Timestamp waiting_since;  // of the current wait, for the story
  Timestamp not_before;     // earliest start or back-off
  std::int32_t failures = 0;
  std::uint32_t attempts = 0;
  JobId parent;
  std::int32_t index = 0;
  std::int32_t children_alive = 0;  // services and arrays
  std::int32_t children_spawned = 0;
  std::int32_t children_failed = 0;
  std::string key;
  std::uint64_t body_hash = 0;
  std::optional<Nomination> nomination;
  std::optional<AttemptState> attempt;
  std::vector<AttemptRecord> past;
  JobSpec spec;
  std::int64_t expected_s = 0;  // its estimate when submitted, last started, or when anything was first known; 0: none
  std::optional<BackfillReservation> reservation;
  Timestamp in_line_since;        // while it is in the line: since when
  std::int64_t waited_ms = 0;     // in the line, before that
  std::int64_t past_service = 0;  // of ended attempts, in thousandths of a GPU times milliseconds
  std::uint32_t generation = 0;   // services: how often their replicas changed; replicas: of which version they are
  std::uint32_t lost_nominations = 0;  // since it last started: of the places that it was promised
  Timestamp evicts_from;               // for that it may stop nobody before then (state/back_off.h)

  // Indexes, rebuilt on load.
  std::int32_t open_dependencies = 0;
  Timestamp timer = Timestamp::never();      // when control has to look at it next
  Timestamp departure = Timestamp::never();  // when it has to be asked to leave for maintenance
  bool in_pending = false;
  bool urgent = false;                 // while it waits: its deadline is near
  std::int32_t level = 0;              // while it waits: of attained service (state/attained_service.h)
  std::uint64_t shape = 0;             // equal for jobs that ask for the same in the same way
  std::uint32_t running_row = kNoRow;  // while it has an attempt: its place in the table of what runs

  bool is_elastic() const {
    return std::any_of(spec.groups.begin(), spec.groups.end(),
                       [](const TaskGroup& group) { return group.least() < group.count; });
  }
  bool evicted_last() const {  // for a claimant
    return !past.empty() && (past.back().cause == StopCause::kReclaim || past.back().cause == StopCause::kPreempt);
  }
  bool has_given_way() const {  // once or more, for a claimant
    return std::any_of(past.begin(), past.end(), [](const AttemptRecord& one) {
      return one.cause == StopCause::kReclaim || one.cause == StopCause::kPreempt;
    });
  }
  // When an attempt that started then has to be over by the time limit.
  Timestamp limit_ends(Timestamp start) const {
    return spec.time_limit_s > 0 ? start + checked_multiply(spec.time_limit_s, 1000) : Timestamp::never();
  }
  // A replica of a service, or an element of an array, that asks to stand away from the others of it.
  bool spreads_with_others() const { return spec.spread && parent.valid(); }
  bool is_parent() const { return spec.kind == JobKind::kService || spec.kind == JobKind::kArray; }
  static constexpr auto fields() {
    return field_list(
        field("id", &JobState::id), field("queue", &JobState::queue), field("priority", &JobState::priority),
        field("phase", &JobState::phase), field("held", &JobState::held),
        field("cancel_requested", &JobState::cancel_requested), field("submitted", &JobState::submitted),
        field("waiting_since", &JobState::waiting_since), field("not_before", &JobState::not_before),
        field("failures", &JobState::failures), field("attempts", &JobState::attempts),
        field("parent", &JobState::parent), field("index", &JobState::index),
        field("children_alive", &JobState::children_alive), field("children_spawned", &JobState::children_spawned),
        field("children_failed", &JobState::children_failed), field("key", &JobState::key),
        field("body_hash", &JobState::body_hash), field("nomination", &JobState::nomination),
        field("attempt", &JobState::attempt), field("past", &JobState::past), field("spec", &JobState::spec),
        field("expected_s", &JobState::expected_s), field("reservation", &JobState::reservation),
        field("in_line_since", &JobState::in_line_since), field("waited_ms", &JobState::waited_ms),
        field("past_service", &JobState::past_service), field("generation", &JobState::generation),
        field("lost_nominations", &JobState::lost_nominations), field("evicts_from", &JobState::evicts_from));
  }
};

// The minute that the time lies in.
inline Timestamp whole_minute(Timestamp time) {
  constexpr std::int64_t kLengthMs = 60'000;
  const std::int64_t into_ms = time.ms % kLengthMs;
  return Timestamp{time.ms - into_ms - (into_ms < 0 ? kLengthMs : 0)};
}

inline PendingKey pending_key(const JobState& job) {
  return {-std::int64_t{job.priority}, job.level, job.urgent ? *job.spec.deadline : Timestamp::never(), job.submitted,
          job.id};
}

}  // namespace berth::state
