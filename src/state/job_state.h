#pragma once
// A live job as the state holds it: what was submitted, its phase, and its current attempt.
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
#include "model/pod_risk.h"
#include "model/resources.h"
#include "state/queue_state.h"

namespace berth::state {

// Returns true if a charge with mask `within` ranks above one with mask `other`. The topmost queue at which the masks
// differ decides: the charge that is within its guarantee there ranks higher. The bit of the root is ignored, because
// the root has no guarantee.
inline bool is_higher(std::uint64_t within, std::uint64_t other) {
  const std::uint64_t differing = (within ^ other) & ~std::uint64_t{1};
  return (within & differing & -differing) != 0;
}

// A charge: what one start or scale-up counts against quota. Bit d of `within` is set if it is inside the guarantee of
// the ancestor queue at depth d. `order` is the sequence number of the event that bound it. Charges fill a guarantee in
// this order.
struct Charge {
  Amounts amounts;
  std::uint64_t within = 0;
  Seq order = 0;
  std::uint32_t first_task = 0;
  std::uint32_t tasks = 0;
  std::optional<Amounts> burst;  // the part in burst pools; such a charge is within no guarantee
  bool operator==(const Charge&) const = default;
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
  bool operator==(const TaskState&) const = default;
  static constexpr auto fields() {
    return field_list(field("placement", &TaskState::placement), field("phase", &TaskState::phase),
                      field("incarnation", &TaskState::incarnation), field("reason", &TaskState::reason),
                      field("code", &TaskState::code));
  }
};

// A request to stop that is in progress: for the whole job, or for the last tasks of an elastic gang.
struct Stop {
  StopCause cause = StopCause::kUser;
  JobId preemptor;
  Timestamp began;
  Timestamp deadline;
  bool acknowledged = false;
  bool forced = false;
  std::uint32_t exited_before = 0;  // tasks that had exited when the stop began
  std::uint32_t keep = 0;           // number of tasks that continue; 0: the whole job stops
  std::vector<TaskPlacement> to;    // consolidate and move: the places reserved for its restart
  bool operator==(const Stop&) const = default;
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
  std::uint32_t exited = 0;  // number of tasks that have exited
  bool signalled = false;    // it was asked to stop at least once; an exit caused by that is no failure
  std::optional<Stop> stop;
  std::int64_t checkpoint_step = 0;
  std::optional<Timestamp> checkpoint_at;
  std::string first_failure;  // message of the first task that failed
  std::int32_t failure_code = 0;
  Timestamp resized;                        // its last change of size: start, scale-up or scale-down
  std::uint32_t shrinks = 0;                // number of scale-downs; tasks added later get a higher incarnation
  std::optional<Timestamp> reserved_start;  // start time of the first backfill reservation of its wait
  std::int64_t grace_used_ms = 0;           // grace period used up, as of eviction_cancelled_at
  // When its last eviction was cancelled. While it is asked to stop: when that stop began.
  Timestamp eviction_cancelled_at;
  NodeId failed_on;  // the node of the first task that failed
  bool ran = false;  // of interactive jobs alone: the task has started

  bool all_exited() const { return exited == tasks.size(); }
  // Returns true if its last tasks were asked to stop and the others continue.
  bool shrinking() const { return stop && stop->keep > 0; }
  // Returns true if the whole job was asked to stop.
  bool stopping() const { return stop && stop->keep == 0; }
  // Returns the number of tasks that it started with. Tasks beyond these are scaled-up tasks and can be scaled down.
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
        field("eviction_cancelled_at", &AttemptState::eviction_cancelled_at),
        field_if_set("failed_on", &AttemptState::failed_on), field_if_set("ran", &AttemptState::ran));
  }
};

// A past attempt of the job, kept for its history.
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
  std::vector<std::pair<NodeId, std::int32_t>> gpus_on;  // node and number of GPUs
  std::optional<Timestamp> reserved_start;
  std::uint64_t within = 0;  // as Charge::within, for the whole attempt at its end
  NodeId failed_on = {};     // where its first failing task was; none(): it did not fail, or that was forgotten
  // Returns true if nothing but a failure of its own tasks made it end, of which the first ends the others of a gang.
  bool ended_itself() const { return !cause || cause == StopCause::kTaskFailed; }
  static constexpr auto fields() {
    return field_list(
        field("number", &AttemptRecord::number), field("waited_from", &AttemptRecord::waited_from),
        field("started", &AttemptRecord::started), field("ended", &AttemptRecord::ended),
        field("outcome", &AttemptRecord::outcome), field("cause", &AttemptRecord::cause),
        field("preemptor", &AttemptRecord::preemptor), field("code", &AttemptRecord::code),
        field("message", &AttemptRecord::message), field("checkpoint_step", &AttemptRecord::checkpoint_step),
        field("gpus_on", &AttemptRecord::gpus_on), field("reserved_start", &AttemptRecord::reserved_start),
        field("within", &AttemptRecord::within), field_if_set("failed_on", &AttemptRecord::failed_on));
  }
};

// A nomination: places reserved for a preemptor until its victims have exited.
struct Nomination {
  std::vector<TaskPlacement> placements;
  std::vector<JobId> victims;
  StopCause cause = StopCause::kReclaim;
  Amounts amounts;
  std::uint64_t within = ~std::uint64_t{0};  // bit d: room in the guarantee at depth d is reserved
  std::vector<std::uint32_t> keeps;          // tasks that each victim keeps; empty: all victims stop

  // Returns how many tasks of the victim continue, with their work; 0: the whole victim stops.
  std::uint32_t keep_of(std::size_t victim) const { return keeps.empty() ? 0 : keeps[victim]; }
  // Returns true if the job itself was moved, and starts again at these places.
  bool has_moved() const { return is_move(cause) && victims.empty(); }
  static constexpr auto fields() {
    return field_list(field("placements", &Nomination::placements), field("victims", &Nomination::victims),
                      field("cause", &Nomination::cause), field("amounts", &Nomination::amounts),
                      field("within", &Nomination::within), field("keeps", &Nomination::keeps));
  }
};

// A backfill reservation: places that are kept free for a blocked job until its expected start. `worked_out` is when
// the start was computed.
struct BackfillReservation {
  std::vector<TaskPlacement> placements;
  Timestamp start;
  Timestamp worked_out;
  Timestamp first_start;  // the start of the first reservation of this wait
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
  Timestamp waiting_since;  // start of the current wait, for the history of the job
  Timestamp not_before;     // its earliest start, or the end of its back-off
  std::int32_t failures = 0;
  std::uint32_t attempts = 0;
  JobId parent;
  std::int32_t index = 0;
  std::int32_t children_alive = 0;  // services and arrays: replicas or elements
  std::int32_t children_spawned = 0;
  std::int32_t children_failed = 0;
  std::string key;
  std::uint64_t body_hash = 0;
  std::optional<Nomination> nomination;
  std::optional<AttemptState> attempt;
  std::vector<AttemptRecord> past;
  JobSpec spec;
  // Its estimated run time when it was submitted, last started, or when any was first known; 0: unknown.
  std::int64_t expected_s = 0;
  std::optional<BackfillReservation> reservation;
  Timestamp in_line_since;     // while in its queue's line (not held, no open dependency): since when
  std::int64_t waited_ms = 0;  // its total time in the line before that
  // Service of ended attempts, corrected for resizes of the current one; in milli-GPUs times milliseconds.
  std::int64_t past_service = 0;
  // Services: how often the spec of their replicas changed. Replicas: the generation that they belong to.
  std::uint32_t generation = 0;
  std::uint32_t lost_nominations = 0;  // nominations withdrawn since its last start
  Timestamp evicts_from;               // it may not preempt or reclaim before then (state/back_off.h)
  bool try_given_back = false;         // once in its life: a node was blamed for one of its failures
  PodRisks pod_risks;                  // as it was submitted

  // Indexes, rebuilt when a checkpoint is loaded.
  std::int32_t open_dependencies = 0;
  Timestamp timer = Timestamp::never();      // when control must reconcile it next
  Timestamp departure = Timestamp::never();  // when it must be asked to stop for maintenance
  // True if it is listed as pending in its queue.
  bool in_pending = false;
  bool urgent = false;                 // while pending: its deadline is near
  std::int32_t level = 0;              // while pending: its level of attained service
  std::uint64_t shape = 0;             // its equivalence class; equal for jobs with equal requests
  std::uint32_t running_row = kNoRow;  // while it has an attempt: its row in RunningTable

  bool is_elastic() const {
    return std::any_of(spec.groups.begin(), spec.groups.end(),
                       [](const TaskGroup& group) { return group.least() < group.count; });
  }
  bool evicted_last() const {  // by reclaim or preemption
    return !past.empty() && (past.back().cause == StopCause::kReclaim || past.back().cause == StopCause::kPreempt);
  }
  bool has_given_way() const {  // at least once, by reclaim or preemption
    return std::any_of(past.begin(), past.end(), [](const AttemptRecord& one) {
      return one.cause == StopCause::kReclaim || one.cause == StopCause::kPreempt;
    });
  }
  // Returns when an attempt that started at `start` reaches the time limit; never() without a limit.
  Timestamp limit_ends(Timestamp start) const {
    return spec.time_limit_s > 0 ? start + checked_multiply(spec.time_limit_s, 1000) : Timestamp::never();
  }
  // Returns true for a replica or an array element that asks to be spread: placed on other nodes than its siblings.
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
        field("lost_nominations", &JobState::lost_nominations), field("evicts_from", &JobState::evicts_from),
        field_if_set("try_given_back", &JobState::try_given_back), field_if_set("pod_risks", &JobState::pod_risks));
  }
};

// Returns the time rounded down to a whole minute.
inline Timestamp whole_minute(Timestamp time) {
  constexpr std::int64_t kLengthMs = 60'000;
  const std::int64_t into_ms = time.ms % kLengthMs;
  return Timestamp{time.ms - into_ms - (into_ms < 0 ? kLengthMs : 0)};
}

// Returns the position of the job in the order of its leaf queue.
inline PendingKey pending_key(const JobState& job) {
  return {-std::int64_t{job.priority}, job.level, job.urgent ? *job.spec.deadline : Timestamp::never(), job.submitted,
          job.id};
}

}  // namespace berth::state
