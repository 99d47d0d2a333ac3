#include "control/reconcile.h"

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/checked.h"
#include "base/planted.h"
#include "control/drain.h"
#include "control/guarantee_accounting.h"
#include "control/maintenance.h"
#include "control/node_contact.h"
#include "control/queue_change.h"
#include "control/services.h"
#include "control/suspect.h"
#include "model/exit_code.h"
#include "state/back_off.h"
#include "state/grace.h"
#include "state/guarantee_decay.h"
#include "state/replicas.h"

namespace berth::control {

namespace {

using state::AttemptState;
using state::JobState;
using state::QueueState;
using state::State;

constexpr std::int32_t kPendingElements = 16;  // pending elements of one array at a time
constexpr std::int32_t kSupervisorDeaths = 5;  // so many in a row are forgiven, and no fewer than the job's retries

bool is_eviction(StopCause cause) {
  return cause != StopCause::kUser && cause != StopCause::kTimeLimit && cause != StopCause::kTaskFailed;
}

struct AttemptEnd {
  Outcome outcome = Outcome::kSucceeded;
  bool again = false;  // the job is requeued
  bool back_off = false;
};

bool lost_with_its_node(const AttemptState& attempt) {
  return std::any_of(attempt.tasks.begin(), attempt.tasks.end(), [](const state::TaskState& task) {
    return task.reason == ExitReason::kNodeLost || task.reason == ExitReason::kSupervisorLost;
  });
}

bool any_task(const AttemptState& attempt, ExitReason reason) {
  return std::any_of(attempt.tasks.begin(), attempt.tasks.end(),
                     [&](const state::TaskState& task) { return task.reason == reason; });
}

// Returns true if the first failure is a start that failed for want of means, and not of the job. A program that exits
// with one of these codes has failed by itself.
bool was_not_started(const AttemptState& attempt) {
  return std::any_of(attempt.tasks.begin(), attempt.tasks.end(), [&](const state::TaskState& task) {
    return task.reason == ExitReason::kStartFailed && task.code == attempt.failure_code &&
           (task.code == kNodeShortCode || task.code == kNotStartedCode);
  });
}

// Returns how the attempt has ended, and whether the job would be requeued, without a look at whether it is cancelled.
AttemptEnd own_end_of_attempt(const State& state, const JobState& job) {
  const AttemptState& attempt = *job.attempt;
  const JobState* parent = state.job(job.parent);
  const bool replica = parent != nullptr && parent->spec.kind == JobKind::kService;
  if (attempt.stopping() && is_eviction(attempt.stop->cause)) {
    return {attempt.stop->cause == StopCause::kNodeLost ? Outcome::kNodeLost : Outcome::kPreempted, true};
  }
  // Its time is up, whatever its nodes and supervisors say while it leaves.
  if ((attempt.stopping() && attempt.stop->cause == StopCause::kTimeLimit) ||
      any_task(attempt, ExitReason::kTimeLimit)) {
    return {Outcome::kTimeLimit, replica, replica};
  }
  if (was_not_started(attempt)) return {Outcome::kNodeLost, true, true};
  if (lost_with_its_node(attempt)) {
    const bool died = attempt.failure_code == kSupervisorDiedCode && any_task(attempt, ExitReason::kSupervisorLost);
    const std::int32_t forgiven = std::max(kSupervisorDeaths, job.spec.retries);
    if (died && !replica && state::supervisor_deaths(job, state.now()) > forgiven) return {Outcome::kFailed};
    return {Outcome::kNodeLost, true, died};
  }
  if (attempt.failure_code == 0) {
    if (attempt.signalled)
      return {Outcome::kPreempted, true};  // the eviction was cancelled after the job had saved and exited
    return {Outcome::kSucceeded, replica, replica};
  }
  // The eviction was cancelled after the signal of berth had ended the job, which did not catch signals yet.
  if (attempt.signalled && attempt.failure_code == 128 + job.spec.checkpoint.signal) return {Outcome::kPreempted, true};
  const Outcome outcome = any_task(attempt, ExitReason::kStartFailed) ? Outcome::kStartFailed : Outcome::kFailed;
  const bool again = replica || job.failures < job.spec.retries;
  return {outcome, again, again};
}

// Returns the outcome of the attempt and whether the job is requeued. Requires: all its tasks are over. A request to
// cancel that comes when they are, in the same batch as the last exit, cancels only that the job is requeued.
AttemptEnd end_of_attempt(const State& state, const JobState& job) {
  const AttemptState& attempt = *job.attempt;
  AttemptEnd end = own_end_of_attempt(state, job);
  // The terminal of its user is gone. One whose task never ran had none yet: it still waits for its turn.
  if (job.spec.kind == JobKind::kInteractive && attempt.ran) end.again = end.back_off = false;
  const bool by_user = attempt.stopping() && attempt.stop->cause == StopCause::kUser;
  const bool cancelled = by_user || (job.cancel_requested && (attempt.stopping() || end.again));
  return cancelled ? AttemptEnd{Outcome::kCancelled} : end;
}

bool still_there(const State& state, const std::vector<TaskPlacement>& placements) {
  return std::all_of(placements.begin(), placements.end(), [&](const TaskPlacement& placement) {
    const state::NodeState& node = state.node(placement.node);
    return node.takes_tasks() && std::all_of(placement.gpus.begin(), placement.gpus.end(),
                                             [&](std::uint8_t gpu) { return node.gpus[gpu].usable(); });
  });
}

// Nominates a job that has left in order to move. It gets the places that were kept for it before another job can take
// them. Nothing happens if these places are gone, or if the job may not start yet.
void nominate_move(Batch& batch, JobId id, const std::optional<state::Stop>& stop) {
  const JobState& job = *batch.state().job(id);
  if (!stop || stop->to.empty()) return;
  if (!job.in_pending || job.not_before > batch.now() || !still_there(batch.state(), stop->to)) return;
  std::uint64_t within = 1;
  if (!batch.state().burst_amounts_of(job.spec, stop->to)) {
    within =
        job.past.back().within | batch.state().within_mask(job.queue, batch.state().amounts_of(job.spec, stop->to));
  }
  batch.emit(Nominated{id, stop->to, {}, stop->cause, {}, within});
}

void end_attempt(Batch& batch, const JobState& job) {
  const AttemptEnd end = end_of_attempt(batch.state(), job);
  if (end.outcome == Outcome::kSucceeded) blame_node_of_last_failure(batch, job.id, true);
  const AttemptState& attempt = *job.attempt;
  const JobId id = job.id;
  const std::optional<state::Stop> stop = attempt.stop;  // a copy: the attempt is deleted by AttemptEnded
  const bool own_failure = end.outcome == Outcome::kFailed || end.outcome == Outcome::kStartFailed ||
                           end.outcome == Outcome::kTimeLimit || end.outcome == Outcome::kNodeLost;
  AttemptEnded ended{id, attempt.number, end.outcome, own_failure ? attempt.failure_code : 0,
                     own_failure ? attempt.first_failure : std::string()};
  if (end.outcome == Outcome::kFailed && any_task(attempt, ExitReason::kSupervisorLost)) {
    ended.message += "; that was " + std::to_string(state::supervisor_deaths(job, batch.now())) + " times in a row";
  }
  const std::int32_t code = ended.code;
  const std::string message = ended.message;
  batch.emit(std::move(ended));
  if (end.again) {
    const Timestamp earliest = batch.state().job(id)->not_before;
    batch.emit(JobRequeued{id, end.back_off ? batch.now() + state::back_off_ms(*batch.state().job(id)) : earliest});
    const JobState* array = batch.state().job(job.parent);
    if (array != nullptr && array->held) batch.emit(JobHoldChanged{id, true, "berth"});
    nominate_move(batch, id, stop);
  } else {
    batch.emit(JobFinished{id, end.outcome, code, message});
  }
}

// Asks the job to stop, or only its tasks from index `keep` on if `keep` > 0. A gang that was scaling down for a
// preemptor keeps this preemptor in the new stop.
void begin_stop(Batch& batch, const JobState& job, StopCause cause, std::int64_t grace, std::uint32_t keep = 0) {
  const JobId preemptor = job.attempt->shrinking() ? job.attempt->stop->preemptor : JobId::none();
  batch.emit(StopBegan{job.id, job.attempt->number, cause, preemptor, batch.now() + grace, keep});
}

// Returns the index of the first live task on a draining node.
std::uint32_t first_draining(const State& state, const AttemptState& attempt) {
  const auto leaves = [&](const state::TaskState& task) {
    return task.phase != TaskPhase::kExited && state.node(task.placement.node).draining;
  };
  return static_cast<std::uint32_t>(std::find_if(attempt.tasks.begin(), attempt.tasks.end(), leaves) -
                                    attempt.tasks.begin());
}

// Returns the draining node of the attempt that goes away first, or null.
const state::NodeState* draining_node(const State& state, const AttemptState& attempt) {
  const auto leaves_by = [](const state::NodeState& node) {
    return node.gone_at.ms == 0 ? Timestamp::never() : node.gone_at;
  };
  const state::NodeState* first = nullptr;
  for (const state::TaskState& task : attempt.tasks) {
    const state::NodeState& node = state.node(task.placement.node);
    if (task.phase == TaskPhase::kExited || !node.draining) continue;
    if (first == nullptr || leaves_by(node) < leaves_by(*first)) first = &node;
  }
  return first;
}

// Asks the job to leave a draining node. Returns true if it emitted a stop.
//
// - The node goes away at a known time (a spot notice): the grace ends then at the latest, and max_unavailable does not
//   apply.
// - The node stays: a replica that its service cannot spare stays, too. So does a job that would lose its work, unless
//   `lose_work` is true (control/drain.h).
// - An elastic gang with only scaled-up tasks on the node stops these and all later tasks, and goes on with the rest.
bool leave_draining_node(Batch& batch, const JobState& job, bool lose_work = false) {
  const state::NodeState* node = draining_node(batch.state(), *job.attempt);
  if (node == nullptr) return false;
  const AttemptState& attempt = *job.attempt;
  const std::uint32_t first = first_draining(batch.state(), attempt);
  const bool growth = first >= attempt.base_tasks();
  if (growth && attempt.shrinking() && attempt.stop->keep <= first)
    return false;  // these tasks are being stopped already
  const std::uint32_t keep = growth && !attempt.shrinking() ? first : 0;
  const std::int64_t grace = batch.state().grace_ms(job);
  if (node->gone_at.ms > 0) {
    const std::int64_t left = std::max<std::int64_t>(0, node->gone_at - batch.now());
    begin_stop(batch, job, StopCause::kSpotNotice, planted(Bug::kNoticeIgnored) ? grace : std::min(grace, left), keep);
    return true;
  }
  if (!state::may_leave_by_choice(batch.state(), job)) return false;
  if (keep == 0 && !lose_work && loses_work(batch.state(), job)) return false;
  begin_stop(batch, job, StopCause::kDrain, grace, keep);
  return true;
}

// Asks the job to leave for a maintenance window, one grace before the window begins. Returns true if it emitted a
// stop. A replica that its service cannot spare stays. A window that was planned late does not shorten the grace.
bool leave_for_maintenance(Batch& batch, const JobState& job) {
  const State& state = batch.state();
  if (state.departure_of(job) > batch.now() || planted(Bug::kWindowNotLeft)) return false;
  if (!state::may_leave_by_choice(state, job)) return false;
  begin_stop(batch, job, StopCause::kMaintenance, state.grace_ms(job));
  return true;
}

// Forces the stop when the grace has ended, when a node of the job goes away, or when the checkpoint is acknowledged.
// The stopped tasks of a gang that scales down are removed from the attempt once all of them have exited.
void reconcile_leaving(Batch& batch, const JobState& job) {
  const AttemptState& attempt = *job.attempt;
  const state::Stop& stop = *attempt.stop;
  const bool gone = stop.keep > 0 && std::all_of(attempt.tasks.begin() + stop.keep, attempt.tasks.end(),
                                                 [](const auto& task) { return task.phase == TaskPhase::kExited; });
  if (gone) {
    batch.emit(AttemptShrunk{job.id, attempt.number, stop.keep});
  } else if (!stop.forced && (stop.acknowledged || state::grace_ends(batch.state(), attempt) <= batch.now())) {
    batch.emit(StopForced{job.id, attempt.number});
  }
}

void reconcile_running(Batch& batch, JobId id) {
  const JobState& job = *batch.state().job(id);
  const AttemptState& attempt = *job.attempt;
  if (attempt.all_exited()) {
    end_attempt(batch, job);
    return;
  }
  if (attempt.stopping()) {
    reconcile_leaving(batch, job);
    return;
  }
  const std::int64_t grace = batch.state().grace_ms(job);
  if (job.cancel_requested) {
    begin_stop(batch, job, StopCause::kUser, grace);
  } else if (attempt.failure_code != 0) {
    begin_stop(batch, job, StopCause::kTaskFailed, 0);
    batch.emit(StopForced{id, attempt.number});
  } else if (job.limit_ends(attempt.started) <= batch.now()) {
    begin_stop(batch, job, StopCause::kTimeLimit, grace);
  } else if (leave_draining_node(batch, job) || leave_for_maintenance(batch, job)) {
    return;
  } else if (attempt.shrinking()) {
    reconcile_leaving(batch, job);
  }
}

// Returns true if a victim that is preempted for the nominated job has a higher priority by now. The victim would
// preempt the job as soon as it starts.
bool is_below_a_victim(const State& state, const JobState& preemptor) {
  const auto& victims = preemptor.nomination->victims;
  return std::any_of(victims.begin(), victims.end(), [&](JobId id) {
    const JobState* victim = state.job(id);
    if (victim == nullptr || !victim->attempt || !victim->attempt->stop) return false;
    const state::Stop& stop = *victim->attempt->stop;
    return stop.preemptor == preemptor.id && stop.cause == StopCause::kPreempt && stop.keep == 0 &&
           victim->priority > preemptor.priority;
  });
}

struct Leaving {
  Amounts amounts;
  std::int64_t jobs = 0;  // jobs that stop completely
};

// Returns the amounts of all stopping tasks below the queue, of one user or, if `user` is null, of all users.
Leaving leaving_below(const State& state, QueueId queue, const std::string* user) {
  Leaving leaving;
  for (const JobId id : state.running()) {
    const JobState& job = *state.job(id);
    if (!job.attempt->stop || !state.is_below(job.queue, queue)) continue;
    if (user != nullptr && job.spec.user != *user) continue;
    std::vector<TaskPlacement> placements;
    for (std::size_t t = job.attempt->stop->keep; t < job.attempt->tasks.size(); ++t)
      placements.push_back(job.attempt->tasks[t].placement);
    leaving.amounts += state.amounts_of(job.spec, placements);
    if (job.attempt->stopping()) ++leaving.jobs;
  }
  return leaving;
}

// Returns true if no other nominated job below the queue deserves its places less: it has the lowest priority and,
// among equals, is the youngest. `dim` is the limited resource, or kDims for the number of jobs. If a limit does not
// allow all nominations, this one is withdrawn.
bool is_least_deserving(const State& state, const JobState& preemptor, QueueId queue, std::size_t dim,
                        const std::string* user) {
  const auto deserves = [](const JobState& job) {
    return std::tuple(job.priority, -job.submitted.ms, -job.id.value());
  };
  return std::none_of(state.nominated().begin(), state.nominated().end(), [&](JobId id) {
    const JobState& other = *state.job(id);
    if (!state.is_below(other.queue, queue) || (user != nullptr && other.spec.user != *user)) return false;
    return (dim == kDims || other.nomination->amounts[dim] > 0) && deserves(other) < deserves(preemptor);
  });
}

// Returns true if the nomination of `preemptor` breaks the max of the queue and has to be withdrawn. That happens when
// max was lowered after the nomination. Stopping tasks count as gone. Of several nominations the least deserving is
// withdrawn.
bool is_over_max(const State& state, const JobState& preemptor, const QueueState& queue) {
  std::optional<Leaving> leaving;
  for (std::size_t dim = 0; dim < kDims; ++dim) {
    const std::int64_t all = checked_add(queue.usage[dim], queue.nominated[dim]);
    if (preemptor.nomination->amounts[dim] == 0 || all <= queue.max[dim]) continue;
    if (!leaving) leaving = leaving_below(state, queue.id, nullptr);
    if (all - leaving->amounts[dim] > queue.max[dim] && is_least_deserving(state, preemptor, queue.id, dim, nullptr))
      return true;
  }
  return false;
}

// As is_over_max, for the user limits of the queue.
bool is_over_user_limit(const State& state, const JobState& preemptor, const QueueState& queue) {
  if (!queue.limits_users()) return false;
  const std::string& user = preemptor.spec.user;
  const state::UserUsage used = queue.used_by(user);
  const bool gpus = used.gpu_milli > queue.max_gpu_milli_per_user && preemptor.nomination->amounts[kDimGpu] > 0;
  if (!gpus && used.jobs <= queue.max_jobs_per_user) return false;
  const Leaving leaving = leaving_below(state, queue.id, &user);
  const bool stays = gpus && used.gpu_milli - leaving.amounts[kDimGpu] > queue.max_gpu_milli_per_user;
  if (stays && is_least_deserving(state, preemptor, queue.id, kDimGpu, &user)) return true;
  return used.jobs - leaving.jobs > queue.max_jobs_per_user &&
         is_least_deserving(state, preemptor, queue.id, kDims, &user);
}

bool is_over_a_limit(const State& state, const JobState& preemptor) {
  for (QueueId q = preemptor.queue; q.valid(); q = state.queue(q).parent) {
    const QueueState& queue = state.queue(q);
    if (is_over_max(state, preemptor, queue) || is_over_user_limit(state, preemptor, queue)) return true;
  }
  return false;
}

void drop_nomination(Batch& batch, JobId id, const std::string& why) {
  const std::vector<JobId> victims = batch.state().job(id)->nomination->victims;
  batch.emit(NominationDropped{id, why});
  cancel_evictions_for(batch, id, victims);
}

void reconcile_waiting(Batch& batch, JobId id) {
  const JobState* job = batch.state().job(id);
  if (job->nomination && (job->cancel_requested || job->held)) {
    drop_nomination(batch, id, job->held ? "the job was held" : "the job was cancelled");
  } else if (job->nomination && !still_there(batch.state(), job->nomination->placements)) {
    drop_nomination(batch, id, "a node or GPU of its places is no longer available");
  } else if (job->nomination && is_below_a_victim(batch.state(), *job)) {
    drop_nomination(batch, id, "one of its victims has a higher priority now");
  } else if (job->nomination && is_over_a_limit(batch.state(), *job)) {
    drop_nomination(batch, id, "a limit was lowered below what it needs");
  }
  if (job->cancel_requested) batch.emit(JobFinished{id, Outcome::kCancelled, 0, {}});
}

JobSpec element_spec(const JobState& parent, std::int32_t index) {
  JobSpec spec = parent.spec;
  spec.kind = JobKind::kGang;
  spec.name += (spec.name.empty() ? "" : "-") + std::to_string(index);
  spec.array_size = 0;
  spec.array_running = 0;
  spec.dependencies.clear();
  spec.held = false;
  for (TaskGroup& group : spec.groups) group.env.emplace_back("ARRAY_INDEX", std::to_string(index));
  return spec;
}

void spawn_element(Batch& batch, JobId parent_id) {
  const JobState& parent = *batch.state().job(parent_id);
  JobSubmitted event;
  event.job = batch.state().next_job_id();
  event.index = parent.children_spawned;
  event.spec = element_spec(parent, event.index);
  event.priority = parent.priority;
  event.parent = parent_id;
  batch.emit(std::move(event));
}

std::int32_t waiting_children(const State& state, JobId parent) {
  std::int32_t waiting = 0;
  for (const JobId id : state.children().at(parent)) {
    const JobState* child = state.job(id);
    if (child != nullptr && !child->attempt) ++waiting;
  }
  return waiting;
}

void cancel_children(Batch& batch, JobId parent) {
  const auto children = batch.state().children().at(parent);
  for (const JobId id : children) {
    const JobState* child = batch.state().job(id);
    if (child != nullptr && !child->cancel_requested) batch.emit(JobCancelRequested{id, "berth"});
  }
}

void reconcile_parent(Batch& batch, JobId id) {
  const JobState* job = batch.state().job(id);
  if (job->cancel_requested) {
    cancel_children(batch, id);
    if (job->children_alive == 0) batch.emit(JobFinished{id, Outcome::kCancelled, 0, {}});
    return;
  }
  const bool waits = job->held || job->open_dependencies > 0;
  if (job->spec.kind == JobKind::kService) {
    if (!waits) reconcile_service(batch, id);
    return;
  }
  const std::int32_t most = job->spec.array_running == 0 ? job->spec.array_size : job->spec.array_running;
  std::int32_t waiting = waiting_children(batch.state(), id);
  while (!waits && job->children_spawned < job->spec.array_size && job->children_alive < most &&
         waiting < kPendingElements) {
    spawn_element(batch, id);
    ++waiting;
  }
  if (job->children_spawned == job->spec.array_size && job->children_alive == 0) {
    const std::int32_t failed = job->children_failed;
    const std::string message =
        failed == 0 ? std::string()
                    : std::to_string(failed) + (failed == 1 ? " element" : " elements") + " did not succeed";
    batch.emit(JobFinished{id, failed == 0 ? Outcome::kSucceeded : Outcome::kFailed, failed == 0 ? 0 : 1, message});
  }
}

void reconcile_job(Batch& batch, JobId id) {
  const JobState* job = batch.state().job(id);
  if (job == nullptr) return;
  if (job->is_parent()) {
    reconcile_parent(batch, id);
  } else if (job->attempt) {
    reconcile_running(batch, id);
  } else {
    reconcile_waiting(batch, id);
  }
}

// Guarantee decay (state/guarantee_decay.h): emits each change of a guarantee that is due.
void reconcile_guarantees(Batch& batch) {
  while (batch.state().next_guarantee_change() <= batch.now()) {
    const QueueState& queue = batch.state().queue(batch.state().guarantee_times().begin()->second);
    const bool restored = state::guarantee_due(queue).restored;
    const QuotaAmounts left = restored ? queue.configured : state::guarantee_after_idling(queue);
    batch.emit(GuaranteeChanged{queue.path, state::named(batch.state(), queue.guaranteed),
                                state::named(batch.state(), left), restored});
  }
}

// The fragmentation alarm. It is raised at the threshold and cleared at one percent of the fleet below it, so that it
// does not flicker.
void reconcile_alarm(Batch& batch) {
  const State& state = batch.state();
  const std::int64_t percent = state.config().scheduling.fragmentation_alert_percent;
  if (percent == 0 && !state.fragmentation_alarm()) return;
  const std::int64_t unusable = state.fragmentation().unusable_milli();
  const std::int64_t fleet = state.capacity()[kDimGpu];
  const bool high = percent > 0 && unusable > 0 && checked_multiply(unusable, 100) >= checked_multiply(fleet, percent);
  const bool low =
      percent == 0 || checked_multiply(unusable, 100) < checked_multiply(fleet, percent - 1) || unusable == 0;
  if (state.fragmentation_alarm() ? low : high) {
    batch.emit(FragmentationAlarm{high, unusable, state.fragmentation().idle_milli()});
  }
}

}  // namespace

void drain_replica(Batch& batch, JobId id) {
  const JobState& replica = *batch.state().job(id);
  if (!replica.attempt || replica.attempt->stop || replica.attempt->all_exited()) return;
  if (!leave_draining_node(batch, replica)) leave_for_maintenance(batch, replica);
}

bool drain_with_loss(Batch& batch, JobId id) {
  const JobState& job = *batch.state().job(id);
  if (!job.attempt || job.attempt->stopping() || job.attempt->all_exited() || job.cancel_requested) return false;
  return leave_draining_node(batch, job, true);
}

void cancel_evictions_for(Batch& batch, JobId preemptor, const std::vector<JobId>& victims) {
  if (planted(Bug::kVictimsNotLetOff)) return;
  for (const JobId id : victims) {
    const JobState* victim = batch.state().job(id);
    if (victim == nullptr || !state::goes_on_without(*victim, preemptor)) continue;
    batch.emit(StopCancelled{id, victim->attempt->number});
  }
}

bool needs_reconciling(const State& state, Timestamp now) {
  return !state.unreconciled().empty() || !state.roomier().empty() || next_timer(state) <= now;
}

Timestamp next_timer(const State& state) {
  const auto first = [](const auto& times) { return times.empty() ? Timestamp::never() : times.begin()->first; };
  return std::min({first(state.timers()), first(state.probations()), first(state.departures()),
                   state.next_maintenance(), state.next_guarantee_change(), state.next_lease_end()});
}

void reconcile(Batch& batch) {
  State& state = batch.working_state();
  state.release_due_timers(batch.now());
  reconcile_maintenance(batch);
  reconcile_leases(batch);
  reconcile_guarantees(batch);
  while (!state.unreconciled().empty() || !state.roomier().empty()) {
    const auto jobs = state.unreconciled();
    state.clear_unreconciled();
    for (const JobId id : jobs) reconcile_job(batch, id);
    const auto roomier = state.roomier();
    state.clear_roomier();
    for (const QueueId id : roomier) reconcile_guarantee(batch, id);
  }
  reconcile_removals(batch);
  reconcile_alarm(batch);
}

}  // namespace berth::control
