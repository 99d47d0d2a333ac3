// Attempts: from the nomination of a job to the end of its attempt, and what a finished job leaves behind.

#include <algorithm>

#include "base/checked.h"
#include "base/planted.h"
#include "state/attained_service.h"
#include "state/back_off.h"
#include "state/estimate.h"
#include "state/grace.h"
#include "state/replicas.h"
#include "state/state.h"

namespace berth::state {

namespace {

// Returns the top-level queue (a child of the root) that the leaf is or is below.
QueueId side_of(const State& state, QueueId leaf) {
  while (state.queue(leaf).depth > 1) leaf = state.queue(leaf).parent;
  return leaf;
}

// Returns true if a scaled-up elastic gang runs under the same top-level queue as the leaf while any job is pending.
bool any_growth_beside(const State& state, QueueId leaf) {
  if (state.queue(state.root()).pending_below == 0) return false;
  return std::any_of(state.elastic().begin(), state.elastic().end(), [&](JobId id) {
    const JobState& gang = *state.job(id);
    return gang.attempt && gang.attempt->charges.size() > 1 && side_of(state, gang.queue) == side_of(state, leaf);
  });
}

// Returns true if a job under the same top-level queue as the leaf has a backfill reservation. When other jobs there
// use more, the reserved job may come to borrow. Jobs that could then reclaim from it may pass its reservation.
bool any_reservation_beside(const State& state, QueueId leaf) {
  return std::any_of(state.reservations().begin(), state.reservations().end(),
                     [&](JobId id) { return side_of(state, state.job(id)->queue) == side_of(state, leaf); });
}

}  // namespace

// Called when jobs of the leaf use or are nominated more. Other jobs may then reclaim scaled-up tasks under the same
// top-level queue, or pass backfill reservations there.
void State::has_more(QueueId leaf) {
  if (any_reservation_beside(*this, leaf)) {
    waits_.mark_reservations_freed();
    ++opportunity_;
  }
  if (!any_growth_beside(*this, leaf)) return;
  waits_.activate_all();
  ++opportunity_;
}

void State::on(const Nominated& event) {
  JobState& job = existing(event.job);
  BERTH_CHECK(job.phase == JobPhase::kPending);
  BERTH_CHECK(!job.nomination.has_value());
  Nomination nomination;
  nomination.placements = event.placements;
  nomination.victims = event.victims;
  nomination.keeps = event.keeps;
  nomination.cause = event.cause;
  nomination.amounts = amounts_of(job.spec, event.placements);
  nominate_tasks(job, event.placements, +1);
  nomination.within = event.within;
  nominate_queues(job, nomination.amounts, nomination.within, +1);
  has_more(job.queue);
  waits_.mark_changed();  // a preemptor that wanted these victims may find others
  ++opportunity_;
  drop_reservation(job);
  job.nomination = std::move(nomination);
  nominated_.insert(job.id);
}

void State::drop_nomination(JobState& job) {
  if (!job.nomination) return;
  nominate_tasks(job, job.nomination->placements, -1);
  nominate_queues(job, job.nomination->amounts, job.nomination->within, -1);
  for (QueueId q = job.queue; q.valid(); q = queue(q).parent) {
    if (!queue(q).borrowed.empty()) roomier_.insert(q);
  }
  job.nomination.reset();
  nominated_.erase(job.id);
}

void State::on(const NominationDropped& event) {
  JobState& job = existing(event.job);
  drop_nomination(job);
  unreconciled_.insert(nominated_.begin(), nominated_.end());  // a limit may be too low for other nominations, too
  const std::int64_t pause_ms = pause_after_lost_nominations_ms(++job.lost_nominations);
  if (pause_ms > 0) job.evicts_from = now_ + pause_ms;
  if (job.in_pending) {
    strike_pending(job);
    job.shape = eq_class_of(job);
    list_pending(job);
    waits_.activate({job.queue, job.shape});
  }
  unreconciled_.insert(event.job);
  ++opportunity_;
}

namespace {

// Returns the charge of tasks that are about to be bound, numbered after the tasks that the attempt has.
Charge charge_of(const State& state, const JobState& job, std::span<const TaskPlacement> placements,
                 std::uint64_t within) {
  Charge charge;
  charge.amounts = state.amounts_of(job.spec, placements);
  charge.burst = state.burst_amounts_of(job.spec, placements);
  charge.within = within;
  charge.order = state.last_seq();
  charge.first_task = static_cast<std::uint32_t>(job.attempt->tasks.size());
  charge.tasks = static_cast<std::uint32_t>(placements.size());
  return charge;
}

// Adds to `queues` those at which the charge borrows although it is within at their child. There it may take room from
// charges that are within and borrow at their own child.
void add_contended(const State& state, QueueId leaf, const Charge& charge, std::set<QueueId>& queues) {
  for (QueueId q = state.queue(leaf).parent; q.valid() && q != state.root(); q = state.queue(q).parent) {
    if ((charge.within >> state.queue(q).depth & 3U) == 2U) queues.insert(q);
  }
}

}  // namespace

void State::on(const AttemptStarted& event) {
  JobState& job = existing(event.job);
  BERTH_CHECK(job.phase == JobPhase::kPending);
  BERTH_CHECK(event.attempt == job.attempts + 1);
  if (job.nomination) {
    waits_.activate_all();  // others may evict it, though they could not evict its victims
    ++opportunity_;
  }
  // A queue that limits lending keeps back less once part of its guarantee is used. Other queues may use the rest.
  for (QueueId q = job.queue; q.valid(); q = queue(q).parent) {
    if (queue(q).limits_lending) ++opportunity_;
  }
  drop_nomination(job);
  remove_pending(job);
  job.lost_nominations = 0;
  job.evicts_from = {};
  job.attempts = event.attempt;
  job.phase = JobPhase::kRunning;
  job.expected_s = estimate(*this, job).seconds;
  AttemptState& attempt = job.attempt.emplace();
  attempt.number = event.attempt;
  attempt.started = now_;
  attempt.resized = now_;
  attempt.master_port = event.master_port;
  if (job.reservation) attempt.reserved_start = job.reservation->first_start;
  drop_reservation(job);
  const Charge charge = charge_of(*this, job, event.placements, event.within);
  bind_tasks(job, event.placements, +1);
  for (const TaskPlacement& placement : event.placements) {
    node_mut(placement.node).tasks.emplace(job.id, static_cast<std::uint32_t>(attempt.tasks.size()));
    attempt.tasks.push_back({placement, TaskPhase::kBound, 1, ExitReason::kExited, 0});
  }
  reset_departure(job);
  if (attempt.master_port != 0) node_mut(attempt.tasks.front().placement.node).ports.insert(attempt.master_port);
  attempt.charges.push_back(charge);
  charge_queues(job, charge, 0, +1);
  add_contended(*this, job.queue, charge, roomier_);
  note_usage(job.queue);
  touch_load(job.queue);
  running_.insert(job.id);
  if (job.is_elastic()) {
    elastic_.insert(job.id);
    ++opportunity_;  // the cycle must find out when it may scale up
  }
  has_more(job.queue);
  put_on_probation(job);
  list_running(job, +1);
  if (!job.spec.labels.empty()) ++opportunity_;  // a pending job may have to run near it
  // With attained service, the cycle must find out when this job ranks behind pending jobs of its queue.
  const QueueState& leaf = queue(job.queue);
  if (!leaf.service_thresholds.empty() && !leaf.pending.empty()) ++opportunity_;
  reset_timer(job);
  notify_dependents(job.id);
  if (!job.parent.valid()) return;
  unreconciled_.insert(job.parent);
  JobState& parent = existing(job.parent);
  if (parent.attempts > 0) return;
  parent.attempts = 1;  // a service or array starts with its first child
  notify_dependents(parent.id);
}

void State::on(const AttemptGrown& event) {
  JobState& job = existing(event.job);
  BERTH_CHECK(job.phase == JobPhase::kRunning);
  AttemptState& attempt = *job.attempt;
  const Charge charge = charge_of(*this, job, event.placements, event.within);
  bind_tasks(job, event.placements, +1);
  for (const TaskPlacement& placement : event.placements) {
    node_mut(placement.node).tasks.emplace(job.id, static_cast<std::uint32_t>(attempt.tasks.size()));
    attempt.tasks.push_back({placement, TaskPhase::kBound, 1 + attempt.shrinks, ExitReason::kExited, 0});
  }
  attempt.charges.push_back(charge);
  attempt.resized = now_;
  // Service is counted from the start of the attempt, but the new tasks were not held since then.
  job.past_service -= checked_multiply(charge.amounts[kDimGpu], now_ - attempt.started);
  charge_queues(job, charge, static_cast<std::uint32_t>(attempt.charges.size() - 1), +1);
  running_table_.set(job);
  note_usage(job.queue);
  touch_load(job.queue);
  reset_departure(job);
  activate_preemptors(queue(job.queue), job.priority);
  waits_.activate_all();  // other queues may reclaim scaled-up tasks, now that there are more
  ++opportunity_;
}

// Releases the charges of the tasks from `keep` on. A charge of tasks on both sides of `keep` is cut, and its first
// part stays.
void State::cut_charges(JobState& job, std::uint32_t keep) {
  AttemptState& attempt = *job.attempt;
  while (attempt.charges.back().first_task + attempt.charges.back().tasks > keep) {
    const auto index = static_cast<std::uint32_t>(attempt.charges.size() - 1);
    Charge& last = attempt.charges.back();
    charge_queues(job, last, index, -1);
    if (planted(Bug::kShrinkNotBooked)) charge_queues(job, last, index, +1);
    if (last.first_task >= keep) {
      attempt.charges.pop_back();
      continue;
    }
    last.tasks = keep - last.first_task;
    std::vector<TaskPlacement> rest;
    for (std::uint32_t t = last.first_task; t < keep; ++t) rest.push_back(attempt.tasks[t].placement);
    last.amounts = amounts_of(job.spec, rest);
    last.burst = burst_amounts_of(job.spec, rest);
    charge_queues(job, last, index, +1);
  }
}

void State::on(const AttemptShrunk& event) {
  JobState& job = existing(event.job);
  AttemptState& attempt = *job.attempt;
  BERTH_CHECK(attempt.shrinking());
  BERTH_CHECK(attempt.stop->keep == event.keep);
  BERTH_CHECK(event.keep >= attempt.base_tasks());
  std::vector<TaskPlacement> leaving;
  for (std::size_t t = event.keep; t < attempt.tasks.size(); ++t) {
    BERTH_CHECK(attempt.tasks[t].phase == TaskPhase::kExited);
    leaving.push_back(attempt.tasks[t].placement);
  }
  bind_tasks(job, leaving, -1);
  const std::int64_t service = service_of(job, now_);
  cut_charges(job, event.keep);
  job.past_service += service - service_of(job, now_);  // the released tasks were held until now
  attempt.exited -= static_cast<std::uint32_t>(leaving.size());
  attempt.tasks.resize(event.keep);
  attempt.stop.reset();
  attempt.resized = now_;
  ++attempt.shrinks;
  job.phase = JobPhase::kRunning;
  running_table_.set(job);
  note_usage(job.queue);
  touch_load(job.queue);
  reset_departure(job);
  for (QueueId q = job.queue; q.valid(); q = queue(q).parent) {
    if (!queue(q).borrowed.empty()) roomier_.insert(q);
  }
  reset_timer(job);
  unreconciled_.insert(job.id);
  ++opportunity_;
}

void State::on(const ChargePromoted& event) {
  JobState& job = existing(event.job);
  Charge& charge = job.attempt->charges[event.charge];
  charge_queues(job, charge, event.charge, -1);
  const std::uint64_t lost = charge.within & ~event.within;
  charge.within = event.within;
  charge_queues(job, charge, event.charge, +1);
  running_table_.set(job);
  for (QueueId q = job.queue; q != root(); q = queue(q).parent) {
    if ((lost >> queue(q).depth & 1U) == 0) continue;
    roomier_.insert(q);
    roomier_.insert(queue(q).parent);  // it may be within there only because the room was idle
  }
  if (lost != 0) ++opportunity_;  // other queues may reclaim it from now on
  add_contended(*this, job.queue, charge, roomier_);
}

void State::on(const TaskStarted& event) {
  JobState& job = existing(event.job);
  TaskState& task = job.attempt->tasks[event.task];
  BERTH_CHECK(task.phase == TaskPhase::kBound);
  task.phase = TaskPhase::kRunning;
  if (job.spec.kind == JobKind::kInteractive) job.attempt->ran = true;
  mark_service_unreconciled(existing(event.job));
}

void State::on(const TaskExited& event) {
  JobState& job = existing(event.job);
  AttemptState& attempt = *job.attempt;
  TaskState& task = attempt.tasks[event.task];
  BERTH_CHECK(task.phase != TaskPhase::kExited);
  task.phase = TaskPhase::kExited;
  task.reason = event.reason;
  task.code = event.code;
  ++attempt.exited;
  const bool given_back = attempt.shrinking() && event.task >= attempt.stop->keep;
  if (event.code != 0 && attempt.failure_code == 0 && !given_back) {
    attempt.failure_code = event.code;
    attempt.first_failure = "task " + std::to_string(event.task) + ": " +
                            (event.message.empty() ? std::string(name_of(event.reason)) : event.message);
    if (event.node_doubtful) attempt.failed_on = task.placement.node;
  }
  node_mut(task.placement.node).tasks.erase({job.id, event.task});
  unreconciled_.insert(job.id);
}

void State::on(const StopBegan& event) {
  JobState& job = existing(event.job);
  BERTH_CHECK(job.phase == JobPhase::kRunning || (job.attempt->shrinking() && event.keep == 0));
  job.phase = JobPhase::kStopping;
  if (event.keep == 0) job.attempt->signalled = true;
  Stop stop;
  stop.cause = event.cause;
  stop.preemptor = event.preemptor;
  stop.began = now_;
  stop.deadline = event.deadline;
  stop.exited_before = job.attempt->exited;
  stop.keep = event.keep;
  job.attempt->stop = stop;
  job.attempt->grace_used_ms = grace_used_ms(*this, job, now_);
  job.attempt->eviction_cancelled_at = now_;
  running_table_.set(job);
  const bool evicted = event.keep == 0 && (event.cause == StopCause::kReclaim || event.cause == StopCause::kPreempt);
  if (evicted && config_.scheduling.evictions_per_hour > 0) evictions_.note(now_);
  for (QueueId q = limits_evictions(job.queue); evicted && q.valid(); q = next_limit(q))
    queue_mut(q).evictions.note(now_);
  if (event.cause == StopCause::kConsolidate && config_.scheduling.consolidations_per_hour > 0) moves_.note(now_);
  reset_timer(job);
  reset_departure(job);
  unreconciled_.insert(job.id);
}

void State::on(const MoveNominated& event) {
  JobState& job = existing(event.job);
  BERTH_CHECK(job.attempt->stopping());
  BERTH_CHECK(job.attempt->stop->to.empty());
  job.attempt->stop->to = event.placements;
  nominate_tasks(job, event.placements, +1);
}

void State::on(const StopCancelled& event) {
  JobState& job = existing(event.job);
  BERTH_CHECK(job.phase == JobPhase::kStopping);
  job.phase = JobPhase::kRunning;
  AttemptState& attempt = *job.attempt;
  attempt.grace_used_ms += now_ - attempt.stop->began;
  attempt.eviction_cancelled_at = now_;
  evictions_.forget(attempt.stop->began);
  for (QueueId q = limits_evictions(job.queue); q.valid(); q = next_limit(q))
    queue_mut(q).evictions.forget(attempt.stop->began);
  attempt.stop.reset();
  running_table_.set(job);
  reset_timer(job);
  reset_departure(job);
  unreconciled_.insert(job.id);  // it may have been cancelled meanwhile, or must stop for another cause
  mark_service_unreconciled(job);
  ++opportunity_;
}

void State::on(const StopForced& event) {
  JobState& job = existing(event.job);
  BERTH_CHECK(job.attempt->stop.has_value());
  job.attempt->stop->forced = true;
  reset_timer(job);
}

void State::on(const CheckpointReported& event) {
  JobState& job = existing(event.job);
  job.attempt->checkpoint_step = event.step;
  job.attempt->checkpoint_at = now_;
  running_table_.set(job);
  if (job.attempt->stop) {
    job.attempt->stop->acknowledged = true;
    unreconciled_.insert(job.id);
  }
}

void State::release_attempt(JobState& job) {
  AttemptState& attempt = *job.attempt;
  if (attempt.stop) nominate_tasks(job, attempt.stop->to, -1);  // the job is nominated there again when it is pending
  for (std::uint32_t i = 0; i < attempt.tasks.size(); ++i) {
    const NodeId node_id = attempt.tasks[i].placement.node;
    bind_task(job, attempt.tasks[i].placement, -1);
    node_mut(node_id).tasks.erase({job.id, i});
    const bool last_here = i + 1 == attempt.tasks.size() || attempt.tasks[i + 1].placement.node != node_id;
    if (!last_here) continue;
    refresh_in_indexes(node_id);
    mark_freed(node_id);
  }
  if (attempt.master_port != 0) node_mut(attempt.tasks.front().placement.node).ports.erase(attempt.master_port);
  for (std::uint32_t i = planted(Bug::kForgottenCharge) ? 1 : 0; i < attempt.charges.size(); ++i) {
    charge_queues(job, attempt.charges[i], i, -1);
  }
  note_usage(job.queue);
  for (QueueId q = job.queue; q.valid(); q = queue(q).parent) {
    if (!queue(q).borrowed.empty()) roomier_.insert(q);
  }
}

namespace {

std::uint64_t within_as_whole(const AttemptState& attempt) {
  std::uint64_t within = ~std::uint64_t{0};
  for (const Charge& charge : attempt.charges) within &= charge.within;
  return within;
}

}  // namespace

void State::on(const AttemptEnded& event) {
  JobState& job = existing(event.job);
  AttemptState& attempt = *job.attempt;
  BERTH_CHECK(attempt.number == event.attempt);
  BERTH_CHECK(attempt.all_exited());
  job.past_service = service_of(job, now_);
  release_attempt(job);
  AttemptRecord record;
  record.within = within_as_whole(attempt);
  record.number = attempt.number;
  record.waited_from = job.waiting_since;
  record.started = attempt.started;
  record.reserved_start = attempt.reserved_start;
  record.ended = now_;
  record.outcome = event.outcome;
  if (attempt.stopping()) {
    record.cause = attempt.stop->cause;
    record.preemptor = attempt.stop->preemptor;
  }
  record.code = event.code;
  record.message = event.message;
  record.checkpoint_step = attempt.checkpoint_step;
  const bool has_failed = event.outcome == Outcome::kFailed || event.outcome == Outcome::kStartFailed ||
                          event.outcome == Outcome::kNodeLost;
  if (has_failed && record.ended_itself()) record.failed_on = attempt.failed_on;
  for (const TaskState& task : attempt.tasks) {
    const auto gpus = static_cast<std::int32_t>(task.placement.gpus.size());
    if (!record.gpus_on.empty() && record.gpus_on.back().first == task.placement.node) {
      record.gpus_on.back().second += gpus;
    } else {
      record.gpus_on.emplace_back(task.placement.node, gpus);
    }
  }
  constexpr std::size_t kAttemptsKept = 100;
  if (job.past.size() == kAttemptsKept) job.past.erase(job.past.begin() + 1);  // keeps the first one and the latest
  job.past.push_back(std::move(record));
  probations_.erase({reliable_from(job), job.id});
  learn_run_time(job, event.outcome);
  if (event.outcome == Outcome::kFailed || event.outcome == Outcome::kStartFailed ||
      (planted(Bug::kRetryCountsPreempt) && event.outcome == Outcome::kPreempted)) {
    ++job.failures;
  }
  list_running(job, -1);
  job.attempt.reset();
  reset_departure(job);
  job.phase = JobPhase::kPending;
  job.waiting_since = now_;
  running_.erase(job.id);
  elastic_.erase(job.id);
  reset_timer(job);
  unreconciled_.insert(job.id);
  ++opportunity_;
}

// Learns the run time of an attempt that ended by itself. An attempt that berth or a fault cut short says nothing. If
// the job saves its work on eviction, its evicted attempts count too, because the next attempt continued from there.
void State::learn_run_time(const JobState& job, Outcome outcome) {
  const JobState* parent = jobs_.find(job.parent);
  if (parent != nullptr && parent->spec.kind == JobKind::kService) return;
  if (outcome == Outcome::kPreempted || outcome == Outcome::kNodeLost || outcome == Outcome::kStartFailed) return;
  std::int64_t ran_ms = now_ - job.past.back().started;
  for (std::size_t i = 0; i + 1 < job.past.size() && job.spec.checkpoint.on_signal; ++i) {
    const AttemptRecord& attempt = job.past[i];
    if (attempt.outcome == Outcome::kPreempted) ran_ms += attempt.ended - attempt.started;
  }
  const bool nothing_was_known = !run_times_.quantile(job.spec, kLearnedPercent);
  run_times_.learn(job.spec, (ran_ms + 999) / 1000);
  if (nothing_was_known && run_times_.quantile(job.spec, kLearnedPercent)) estimate_the_waiting();
}

// Estimates the jobs without an attempt that have no estimate yet. As soon as enough run times of any jobs are known,
// every job has an estimate.
void State::estimate_the_waiting() {
  jobs_.for_each([&](JobState& job) {
    if (!job.attempt && job.expected_s == 0) job.expected_s = estimate(*this, job).seconds;
  });
  waits_.mark_reservations_freed();
}

void State::on(const JobRequeued& event) {
  JobState& job = existing(event.job);
  job.not_before = event.not_before;
  job.shape = eq_class_of(job);
  if (job.expected_s == 0) job.expected_s = estimate(*this, job).seconds;
  if (!planted(Bug::kPendingLost)) enter_line(job);
  touch_load(job.queue);  // not at the end of its attempt: it was not pending then
  reset_timer(job);
  mark_service_unreconciled(job);  // the service may have a newer generation
}

void State::on(const JobFinished& event) {
  JobState& job = existing(event.job);
  BERTH_CHECK(!job.attempt.has_value());
  drop_nomination(job);
  drop_reservation(job);
  remove_pending(job);
  touch_load(job.queue);
  count_submitted(job, -1);
  if (!job.timer.is_never()) timers_.erase({job.timer, job.id});
  for (const Dependency& dependency : job.spec.dependencies) {
    const auto found = dependents_.find(dependency.job);
    if (found == dependents_.end()) continue;
    found->second.erase(job.id);
    if (found->second.empty()) dependents_.erase(found);
  }
  if (JobState* parent = jobs_.find(job.parent)) {
    --parent->children_alive;
    children_[parent->id].erase(job.id);
    const bool replaced = parent->spec.kind == JobKind::kService && event.outcome == Outcome::kCancelled;
    if (event.outcome != Outcome::kSucceeded && !replaced) ++parent->children_failed;
    unreconciled_.insert(parent->id);
  }
  children_.erase(job.id);
  unreconciled_.erase(job.id);
  finished_.insert(event.job, {event.outcome, event.code});
  jobs_.erase(event.job);
  notify_dependents(event.job);
  if (finished_.size() > kFinishedRemembered) finished_.erase(finished_.first());
  ++opportunity_;
}

}  // namespace berth::state
