// Pending jobs: the line of each queue and its equivalence classes, timers, dependencies and backfill reservations.

#include <algorithm>

#include "base/checked.h"
#include "base/codec.h"
#include "base/hash.h"
#include "base/planted.h"
#include "state/attained_service.h"
#include "state/back_off.h"
#include "state/grace.h"
#include "state/replicas.h"
#include "state/state.h"

namespace berth::state {

namespace {

// Returns a hash over all of the spec that placement looks at.
std::uint64_t shape_of(const JobSpec& spec) {
  Hasher hash;
  for (const TaskGroup& group : spec.groups) {
    hash.add(encode(group.request)).add(encode(group.node_selector)).add(encode(group.tolerations)).add(group.pool);
    hash.add(static_cast<std::uint64_t>(group.count)).add(static_cast<std::uint64_t>(group.least()));
    hash.add(encode(group.topology));
    if (group.numa != NumaPolicy::kBestEffort) hash.add(static_cast<std::uint64_t>(group.numa));
    // Only whether there is an image counts: which one it is does not decide whether the job fits.
    if (!group.image.empty()) hash.add(std::string_view("image"));
    if (!group.node_rules.empty()) hash.add(std::string_view("rules")).add(encode(group.node_rules));
  }
  hash.add(encode(spec.topology))
      .add(static_cast<std::uint64_t>(spec.job_class))
      .add(static_cast<std::uint64_t>(spec.exclusive))
      .add(static_cast<std::uint64_t>(spec.spread))
      .add(encode(spec.labels))
      .add(encode(spec.affinity))
      .add(encode(spec.anti_affinity));
  if (spec.latency_objective_ms > 0) hash.add(std::string_view("latency"));
  for (const std::int32_t port : spec.ports) hash.add(static_cast<std::uint64_t>(port));
  return hash.digest();
}

}  // namespace

Timestamp State::urgent_from(const JobSpec& spec) const {
  if (!spec.deadline) return Timestamp::never();
  const std::int64_t needed_s = spec.time_limit_s > 0 ? spec.time_limit_s : spec.estimate_s;
  const std::int64_t ahead_s = checked_add(needed_s, config_.scheduling.deadline_slack_s);
  return Timestamp{checked_subtract(spec.deadline->ms, checked_multiply(ahead_s, 1000))};
}

// Returns the equivalence class of the job. Of two jobs with equal class in one queue, neither can start or preempt
// when the other cannot. A job that may not preempt yet (back-off) has a class of its own. A job that was evicted
// before has another class than one that was not, because it has fewer possible victims.
std::uint64_t State::eq_class_of(const JobState& job) const {
  std::uint64_t shape = shape_of(job.spec);
  // While maintenance windows are planned, one job may exit before a window and another may not.
  if (!maintenance_.empty()) {
    const bool moves = job.spec.checkpoint.on_signal || service_of(*this, job) != nullptr;
    shape = Hasher()
                .add(shape)
                .add(static_cast<std::uint64_t>(moves))
                .add(static_cast<std::uint64_t>(job.spec.time_limit_s))
                .add(static_cast<std::uint64_t>(moves ? grace_ms(job) : 0))
                .add(static_cast<std::uint64_t>(moves ? queue(job.queue).eviction.min_runtime_s : 0))
                .digest();
  }
  if (job.has_given_way()) shape = Hasher().add(shape).add(std::string_view("has given way")).digest();
  if (may_evict_from(job).ms > 0) shape = Hasher().add(shape).add(job.id.value()).digest();
  for (QueueId q = job.queue; q.valid(); q = queue(q).parent) {
    if (queue(q).limits_users()) return Hasher().add(shape).add(job.spec.user).digest();
  }
  return shape;
}

void State::list_pending(const JobState& job) {
  QueueState& leaf = queue_mut(job.queue);
  leaf.pending.insert(pending_key(job));
  leaf.eq_classes[job.shape].insert(pending_key(job));
  if (job.spec.deadline && !job.urgent) deadlines_.emplace(urgent_from(job.spec), job.id);
  if (const Timestamp due = promoted_from(leaf, job); !due.is_never()) promotions_.emplace(due, job.id);
}

void State::strike_pending(const JobState& job) {
  QueueState& leaf = queue_mut(job.queue);
  BERTH_CHECK(leaf.pending.erase(pending_key(job)) == 1);
  const auto eq_class = leaf.eq_classes.find(job.shape);
  eq_class->second.erase(pending_key(job));
  waits_.forget_head({job.queue, job.shape});
  if (eq_class->second.empty()) {
    leaf.eq_classes.erase(eq_class);
    waits_.forget({job.queue, job.shape});
  }
  if (job.spec.deadline && !job.urgent) BERTH_CHECK(deadlines_.erase({urgent_from(job.spec), job.id}) == 1);
  if (const Timestamp due = promoted_from(leaf, job); !due.is_never()) {
    BERTH_CHECK(promotions_.erase({due, job.id}) == 1);
  }
}

// Counts the job by the minute in which its wait began. There are few minutes, however many jobs are pending.
void State::count_wait(const JobState& job, int sign) {
  const auto minute = waits_by_minute_.try_emplace(whole_minute(job.waiting_since)).first;
  minute->second += static_cast<std::size_t>(sign);
  if (minute->second == 0) waits_by_minute_.erase(minute);
}

void State::insert_pending(JobState& job) {
  if (job.in_pending || job.phase != JobPhase::kPending || job.attempt || job.held || job.open_dependencies > 0 ||
      job.is_parent()) {
    return;
  }
  job.in_pending = true;
  job.shape = eq_class_of(job);
  job.urgent = urgent_from(job.spec) <= now_;
  job.level = level_of(queue(job.queue), job, now_);
  list_pending(job);
  for (QueueId q = job.queue; q.valid(); q = queue(q).parent) ++queue_mut(q).pending_below;
  count_wait(job, +1);
  count_demand(job, +1);
  waits_.activate({job.queue, job.shape});
  ++opportunity_;
}

void State::enter_line(JobState& job) {
  if (!job.in_pending) job.in_line_since = now_;
  insert_pending(job);
}

void State::remove_pending(JobState& job) {
  if (!job.in_pending) return;
  strike_pending(job);
  job.waited_ms = waited_ms(job, now_);
  for (QueueId q = job.queue; q.valid(); q = queue(q).parent) --queue_mut(q).pending_below;
  count_wait(job, -1);
  count_demand(job, -1);
  job.in_pending = false;
  // A nominated job may have kept its places because this job would have preempted it elsewhere.
  if (!nominated_.empty()) ++opportunity_;
}

void State::pass_deadlines(Timestamp now) {
  asked_at_ = now;
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    JobState& job = existing(deadlines_.begin()->second);
    strike_pending(job);
    job.urgent = true;
    list_pending(job);
    waits_.activate({job.queue, job.shape});
  }
  while (!promotions_.empty() && promotions_.begin()->first <= now) {
    JobState& job = existing(promotions_.begin()->second);
    strike_pending(job);
    job.level = 0;
    list_pending(job);
    waits_.activate({job.queue, job.shape});
  }
}

void State::reset_timer(JobState& job) {
  if (!job.timer.is_never()) timers_.erase({job.timer, job.id});
  job.timer = Timestamp::never();
  if (job.attempt && job.attempt->stop) {
    if (!job.attempt->stop->forced && !planted(Bug::kTimerLost)) job.timer = grace_ends(*this, *job.attempt);
  }
  if (job.attempt && !job.attempt->stopping()) {
    job.timer = std::min(job.timer, job.limit_ends(job.attempt->started));
  } else if (!job.attempt && job.not_before > now_) {
    job.timer = job.not_before;
  }
  if (!job.timer.is_never()) timers_.emplace(job.timer, job.id);
}

void State::release_due_timers(Timestamp now) {
  for (; !probations_.empty() && probations_.begin()->first <= now; probations_.erase(probations_.begin())) {
    if (const JobState* replica = jobs_.find(probations_.begin()->second)) mark_service_unreconciled(*replica);
  }
  for (; !departures_.empty() && departures_.begin()->first <= now; departures_.erase(departures_.begin())) {
    existing(departures_.begin()->second).departure = Timestamp::never();
    unreconciled_.insert(departures_.begin()->second);
  }
  std::vector<JobId> due;
  for (const auto& [when, id] : timers_) {
    if (when > now) break;
    due.push_back(id);
  }
  for (const JobId id : due) {
    unreconciled_.insert(id);
    JobState& job = existing(id);
    if (job.attempt) continue;  // the event that follows sets its timer
    timers_.erase({job.timer, id});
    job.timer = Timestamp::never();
    if (job.in_pending) waits_.activate({job.queue, job.shape});
    ++opportunity_;
  }
}

// Adds the job to the running jobs of its queue, or removes it. A running job that ranks below a pending one, or may do
// so by attained service, is a possible victim: the pending jobs are then activated.
void State::list_running(JobState& job, int sign) {
  QueueState& leaf = queue_mut(job.queue);
  const auto equals = leaf.running.try_emplace(job.priority).first;
  if (sign > 0) {
    equals->second.insert(job.id);
    running_table_.set(job);
  } else {
    equals->second.erase(job.id);
    running_table_.erase(job, [&](JobId moved) -> JobState& { return existing(moved); });
  }
  if (equals->second.empty()) leaf.running.erase(equals);
  // Scaled-up tasks can be preempted by jobs of equal priority, too.
  const bool from_equals = !leaf.service_thresholds.empty() || (job.attempt && job.attempt->charges.size() > 1);
  if (sign > 0) activate_preemptors(leaf, from_equals ? job.priority : job.priority + 1);
}

// A running job of the queue has become a possible victim of pending jobs with this priority or a higher one. Activates
// all classes of the queue if there is such a job. The victim may have been nominated before these jobs were submitted,
// so that no later cycle would run for them.
void State::activate_preemptors(const QueueState& leaf, std::int32_t priority) {
  if (leaf.pending.empty() || -leaf.pending.begin()->negated_priority < priority) return;
  for (const auto& [shape, jobs] : leaf.eq_classes) waits_.activate({leaf.id, shape});
  ++opportunity_;
}

void State::count_open_dependencies(JobState& job) {
  job.open_dependencies = 0;
  for (const Dependency& dependency : job.spec.dependencies) {
    bool open = true;
    if (const JobState* other = jobs_.find(dependency.job)) {
      open = dependency.kind != DependencyKind::kAfter || other->attempts == 0;
    } else if (const FinishedJob* done = finished(dependency.job)) {
      open = dependency.kind == DependencyKind::kAfterOk && done->outcome != Outcome::kSucceeded;
    } else {
      open = dependency.kind == DependencyKind::kAfterOk;  // outcome forgotten: success cannot be shown
    }
    if (open) ++job.open_dependencies;
  }
}

std::optional<JobId> State::broken_dependency(const JobState& job) const {
  for (const Dependency& dependency : job.spec.dependencies) {
    if (dependency.kind != DependencyKind::kAfterOk || jobs_.find(dependency.job) != nullptr) continue;
    const FinishedJob* done = finished(dependency.job);
    if (done == nullptr || done->outcome != Outcome::kSucceeded) return dependency.job;
  }
  return std::nullopt;
}

void State::notify_dependents(JobId id) {
  const auto found = dependents_.find(id);
  if (found == dependents_.end()) return;
  for (const JobId dependent : found->second) {
    JobState& job = existing(dependent);
    count_open_dependencies(job);
    enter_line(job);
    unreconciled_.insert(dependent);
  }
}

void State::index_job(JobState& job) {
  count_submitted(job, +1);
  for (const Dependency& dependency : job.spec.dependencies) dependents_[dependency.job].insert(job.id);
  count_open_dependencies(job);
  if (job.is_parent()) children_[job.id];
  if (job.parent.valid()) children_[job.parent].insert(job.id);
  if (job.attempt) {
    running_.insert(job.id);
    if (job.is_elastic()) elastic_.insert(job.id);
    put_on_probation(job);
    list_running(job, +1);
    reset_departure(job);
  }
  if (job.nomination) nominated_.insert(job.id);
  if (job.reservation) reservations_.insert(job.id);
  insert_pending(job);
  reset_timer(job);
}

void State::on(const ReservationMade& event) {
  JobState& job = existing(event.job);
  BERTH_CHECK(job.phase == JobPhase::kPending && !job.nomination);
  const Timestamp first = job.reservation ? job.reservation->first_start : event.start;
  if (job.reservation) {  // what the earlier reservation kept free may be used
    waits_.mark_reservations_freed();
    ++opportunity_;
  }
  job.reservation = BackfillReservation{event.placements, event.start, now_, first};
  reservations_.insert(job.id);
}

void State::drop_reservation(JobState& job) {
  if (!job.reservation) return;
  job.reservation.reset();
  reservations_.erase(job.id);
  starts_sought_.reset();
  if (!planted(Bug::kReservationNotTold)) waits_.mark_reservations_freed();
  ++opportunity_;
}

void State::on(const ReservationDropped& event) { drop_reservation(existing(event.job)); }

void State::on(const StartsSought&) { starts_sought_ = now_; }

}  // namespace berth::state
