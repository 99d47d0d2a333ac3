#include "state/state.h"

#include <algorithm>

#include "base/checked.h"
#include "base/codec.h"
#include "base/hash.h"
#include "base/planted.h"
#include "state/attained_service.h"
#include "state/back_off.h"
#include "state/estimate.h"
#include "state/grace.h"
#include "state/replicas.h"

namespace berth::state {

State::State() {
  QueueState root;
  root.id = QueueId(0);
  queues_.push_back(std::move(root));
  queue_paths_.emplace("", QueueId(0));
  trust_domains_.emplace_back();  // the domain of those that name none
  queues_[0].trust_domain = TrustDomainId(0);
}

namespace {

// Whether everything stays bound, promised, allowed and open to claims as it was: such an event wakes at most the lane
// of its own job.
bool changes_nothing_held(const Event& event) {
  return std::holds_alternative<JobSubmitted>(event) || std::holds_alternative<JobHoldChanged>(event) ||
         std::holds_alternative<JobCancelRequested>(event) || std::holds_alternative<JobRequeued>(event) ||
         std::holds_alternative<TaskStarted>(event) || std::holds_alternative<TaskExited>(event) ||
         std::holds_alternative<CheckpointReported>(event) || std::holds_alternative<StopForced>(event) ||
         std::holds_alternative<CycleRan>(event) || std::holds_alternative<FragmentationAlarm>(event) ||
         std::holds_alternative<StartsSought>(event) || std::holds_alternative<ServiceUpdated>(event);
}

// Whom a claim could evict grows though nothing is given back.
bool offers_victims(const Event& event) {
  return std::holds_alternative<JobPriorityChanged>(event) || std::holds_alternative<StopCancelled>(event);
}

}  // namespace

void State::apply(const EventRecord& record) {
  BERTH_CHECK(record.seq == last_seq_ + 1);
  BERTH_CHECK(trials_ == 0);  // what it gives back would not be told to the sleepers
  last_seq_ = record.seq;
  now_ = std::max(now_, record.time);
  std::visit([this](const auto& event) { on(event); }, record.event);
  note_loads();
  if (!changes_nothing_held(record.event)) waits_.mark_changed();
  if (offers_victims(record.event)) waits_.ease_victims();
}

const NodeState* State::node_named(std::string_view name) const {
  const auto found = node_names_.find(name);
  return found == node_names_.end() ? nullptr : &nodes_[found->second.index()];
}

const QueueState* State::queue_at(std::string_view path) const {
  const auto found = queue_paths_.find(path);
  if (found == queue_paths_.end() || queues_[found->second.index()].removed) return nullptr;
  return &queues_[found->second.index()];
}

std::optional<GpuModelId> State::gpu_model_named(std::string_view name) const {
  for (std::size_t i = 0; i < models_.size(); ++i) {
    if (models_[i].name == name) return GpuModelId(static_cast<std::uint16_t>(i));
  }
  return std::nullopt;
}

const KeyEntry* State::key_entry(std::string_view user, std::string_view key) const {
  std::string name(user);
  name.append("\n").append(key);
  const auto found = keys_.find(name);
  return found == keys_.end() ? nullptr : &found->second;
}

JobState& State::existing(JobId id) {
  JobState* job = jobs_.find(id);
  BERTH_CHECK(job != nullptr);
  return *job;
}

// --- waiting -----------------------------------------------------------------------------------------------------

namespace {

// Everything of the spec that placement looks at.
std::uint64_t shape_of(const JobSpec& spec) {
  Hasher hash;
  for (const TaskGroup& group : spec.groups) {
    hash.add(encode(group.request)).add(encode(group.node_selector)).add(encode(group.tolerations)).add(group.pool);
    hash.add(static_cast<std::uint64_t>(group.count)).add(static_cast<std::uint64_t>(group.least()));
    hash.add(encode(group.topology));
  }
  hash.add(encode(spec.topology))
      .add(static_cast<std::uint64_t>(spec.job_class))
      .add(static_cast<std::uint64_t>(spec.exclusive))
      .add(static_cast<std::uint64_t>(spec.spread))
      .add(encode(spec.labels))
      .add(encode(spec.affinity))
      .add(encode(spec.anti_affinity));
  return hash.digest();
}

}  // namespace

Timestamp State::urgent_from(const JobSpec& spec) const {
  if (!spec.deadline) return Timestamp::never();
  const std::int64_t needed_s = spec.time_limit_s > 0 ? spec.time_limit_s : spec.estimate_s;
  const std::int64_t ahead_s = checked_add(needed_s, config_.scheduling.deadline_slack_s);
  return Timestamp{checked_subtract(spec.deadline->ms, checked_multiply(ahead_s, 1000))};
}

// Equal for jobs of a queue of which one cannot start when the other cannot. Who may not stop others yet waits alone.
std::uint64_t State::lane_of(const JobState& job) const {
  std::uint64_t shape = shape_of(job.spec);
  // While windows are planned, one job may be gone before when another is not.
  if (!maintenance_.empty()) {
    const bool moves = job.spec.checkpoint.on_signal || service_of(*this, job) != nullptr;
    shape = Hasher()
                .add(shape)
                .add(static_cast<std::uint64_t>(moves))
                .add(static_cast<std::uint64_t>(job.spec.time_limit_s))
                .add(static_cast<std::uint64_t>(moves ? grace_ms(job.spec) : 0))
                .digest();
  }
  if (may_claim_from(job).ms > 0) shape = Hasher().add(shape).add(job.id.value()).digest();
  for (QueueId q = job.queue; q.valid(); q = queue(q).parent) {
    if (queue(q).limits_users()) return Hasher().add(shape).add(job.spec.user).digest();
  }
  return shape;
}

void State::list_pending(const JobState& job) {
  QueueState& leaf = queue_mut(job.queue);
  leaf.pending.insert(pending_key(job));
  leaf.lanes[job.shape].insert(pending_key(job));
  if (job.spec.deadline && !job.urgent) deadlines_.emplace(urgent_from(job.spec), job.id);
  if (const Timestamp due = promoted_from(leaf, job); !due.is_never()) promotions_.emplace(due, job.id);
}

void State::strike_pending(const JobState& job) {
  QueueState& leaf = queue_mut(job.queue);
  BERTH_CHECK(leaf.pending.erase(pending_key(job)) == 1);
  const auto lane = leaf.lanes.find(job.shape);
  lane->second.erase(pending_key(job));
  if (lane->second.empty()) {
    leaf.lanes.erase(lane);
    waits_.forget({job.queue, job.shape});
  }
  if (job.spec.deadline && !job.urgent) BERTH_CHECK(deadlines_.erase({urgent_from(job.spec), job.id}) == 1);
  if (const Timestamp due = promoted_from(leaf, job); !due.is_never()) {
    BERTH_CHECK(promotions_.erase({due, job.id}) == 1);
  }
}

void State::insert_pending(JobState& job) {
  if (job.in_pending || job.phase != JobPhase::kPending || job.attempt || job.held || job.open_dependencies > 0 ||
      job.is_parent()) {
    return;
  }
  job.in_pending = true;
  job.shape = lane_of(job);
  job.urgent = urgent_from(job.spec) <= now_;
  job.level = level_of(queue(job.queue), job, now_);
  list_pending(job);
  for (QueueId q = job.queue; q.valid(); q = queue(q).parent) ++queue_mut(q).pending_below;
  count_demand(job, +1);
  waits_.wake({job.queue, job.shape});
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
  count_demand(job, -1);
  job.in_pending = false;
}

void State::pass_deadlines(Timestamp now) {
  asked_at_ = now;
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    JobState& job = existing(deadlines_.begin()->second);
    strike_pending(job);
    job.urgent = true;
    list_pending(job);
    waits_.wake({job.queue, job.shape});
  }
  while (!promotions_.empty() && promotions_.begin()->first <= now) {
    JobState& job = existing(promotions_.begin()->second);
    strike_pending(job);
    job.level = 0;
    list_pending(job);
    waits_.wake({job.queue, job.shape});
  }
}

void State::reset_timer(JobState& job) {
  if (!job.timer.is_never()) timers_.erase({job.timer, job.id});
  job.timer = Timestamp::never();
  if (job.attempt && job.attempt->stop) {
    if (!job.attempt->stop->forced && !planted(Bug::kTimerLost)) job.timer = grace_ends(*this, *job.attempt);
  }
  if (job.attempt && !job.attempt->stopping() && job.spec.time_limit_s > 0) {
    job.timer = std::min(job.timer, job.attempt->started + checked_multiply(job.spec.time_limit_s, 1000));
  } else if (!job.attempt && job.not_before > now_) {
    job.timer = job.not_before;
  }
  if (!job.timer.is_never()) timers_.emplace(job.timer, job.id);
}

void State::release_due_timers(Timestamp now) {
  for (; !probations_.empty() && probations_.begin()->first <= now; probations_.erase(probations_.begin())) {
    if (const JobState* replica = jobs_.find(probations_.begin()->second)) unsettle_service(*replica);
  }
  for (; !departures_.empty() && departures_.begin()->first <= now; departures_.erase(departures_.begin())) {
    existing(departures_.begin()->second).departure = Timestamp::never();
    unsettled_.insert(departures_.begin()->second);
  }
  std::vector<JobId> due;
  for (const auto& [when, id] : timers_) {
    if (when > now) break;
    due.push_back(id);
  }
  for (const JobId id : due) {
    unsettled_.insert(id);
    JobState& job = existing(id);
    if (job.attempt) continue;  // the event that follows moves its timer
    timers_.erase({job.timer, id});
    job.timer = Timestamp::never();
    if (job.in_pending) waits_.wake({job.queue, job.shape});
    ++opportunity_;
  }
}

// Whom a waiting job of the queue could preempt. A start of lower priority than what waits, or of a job that may fall
// behind it by its service, makes it worth asking again.
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
  if (sign > 0) wake_claimants(leaf, leaf.service_thresholds.empty() ? job.priority + 1 : job.priority);
}

// Somebody in the queue has become worth asking for room by those who wait with the priority or a higher one.
void State::wake_claimants(const QueueState& leaf, std::int32_t priority) {
  if (leaf.pending.empty() || -leaf.pending.begin()->negated_priority < priority) return;
  for (const auto& [shape, jobs] : leaf.lanes) waits_.wake({leaf.id, shape});
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
      open = dependency.kind == DependencyKind::kAfterOk;  // outcome forgotten: cannot be shown to have succeeded
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
    unsettled_.insert(dependent);
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
  if (job.start_hold) start_holds_.insert(job.id);
  insert_pending(job);
  reset_timer(job);
}

// --- submissions -------------------------------------------------------------------------------------------------

void State::on(const JobSubmitted& event) {
  BERTH_CHECK(event.job == next_job_);
  next_job_ = JobId(next_job_.value() + 1);
  const QueueState* leaf = queue_at(event.spec.queue);
  BERTH_CHECK(leaf != nullptr);
  JobState job;
  job.id = event.job;
  job.queue = leaf->id;
  job.priority = event.priority;
  job.held = event.spec.held;
  job.submitted = now_;
  job.waiting_since = now_;
  job.in_line_since = now_;
  job.not_before = event.spec.earliest_start.value_or(Timestamp{});
  job.parent = event.parent;
  job.index = event.index;
  job.key = event.key;
  job.body_hash = event.body_hash;
  job.spec = event.spec;
  if (JobState* parent = jobs_.find(event.parent)) {
    job.submitted = parent->submitted;  // children are as old as what they belong to
    ++parent->children_alive;
    ++parent->children_spawned;
  }
  job.expected_s = estimate(*this, job).seconds;
  job.generation = event.generation;
  remember_key(event.spec.user, event.key, event.job, event.body_hash);
  JobState& stored = jobs_.insert(event.job, std::move(job));
  learn_mix(stored);
  index_job(stored);
  unsettled_.insert(event.job);
}

void State::remember_key(const std::string& user, const std::string& key, JobId job, std::uint64_t body_hash) {
  if (!key.empty()) {
    std::string name = user + "\n" + key;
    keys_.emplace(name, KeyEntry{job, body_hash, now_});
    key_ages_.emplace(now_, std::move(name));
  }
  forget_old_keys();
}

// While a service is being updated, it goes on when its new replicas may be relied on.
void State::put_on_probation(const JobState& replica) {
  const JobState* parent = jobs_.find(replica.parent);
  if (parent == nullptr || parent->spec.kind != JobKind::kService || parent->generation == 0) return;
  probations_.emplace(reliable_from(replica), replica.id);
}

// One of its replicas serves again, so that another may leave.
void State::unsettle_service(const JobState& replica) {
  const JobState* parent = jobs_.find(replica.parent);
  if (parent != nullptr && parent->spec.kind == JobKind::kService) unsettled_.insert(parent->id);
}

void State::on(const ServiceUpdated& event) {
  JobState& job = existing(event.job);
  BERTH_CHECK(job.spec.kind == JobKind::kService);
  job.spec = event.spec;
  job.priority = event.priority;
  job.generation = event.generation;
  remember_key(event.spec.user, event.key, event.job, event.body_hash);
  unsettled_.insert(job.id);
}

void State::forget_old_keys() {
  while (!key_ages_.empty() && key_ages_.begin()->first + kKeyRetentionMs < now_) {
    keys_.erase(key_ages_.begin()->second);
    key_ages_.erase(key_ages_.begin());
  }
}

void State::on(const JobHoldChanged& event) {
  JobState& job = existing(event.job);
  job.held = event.held;
  if (job.held) {
    remove_pending(job);
    drop_start_hold(job);
  } else {
    enter_line(job);
  }
  unsettled_.insert(job.id);
}

void State::on(const JobPriorityChanged& event) {
  JobState& job = existing(event.job);
  remove_pending(job);
  if (job.attempt) list_running(job, -1);
  job.priority = event.priority;
  if (job.attempt) list_running(job, +1);
  enter_line(job);
  if (job.start_hold) waits_.ease_holds();  // of higher priority than the owner now may pass
  ++opportunity_;
}

void State::on(const JobCancelRequested& event) {
  JobState& job = existing(event.job);
  job.cancel_requested = true;
  unsettled_.insert(job.id);
}

// --- attempts ----------------------------------------------------------------------------------------------------

void State::on(const Nominated& event) {
  JobState& job = existing(event.job);
  BERTH_CHECK(job.phase == JobPhase::kPending);
  BERTH_CHECK(!job.nomination.has_value());
  Nomination nomination;
  nomination.placements = event.placements;
  nomination.victims = event.victims;
  nomination.cause = event.cause;
  nomination.amounts = amounts_of(job.spec, event.placements);
  nominate_tasks(job, event.placements, +1);
  nominate_queues(job, nomination.amounts, +1);
  drop_start_hold(job);
  job.nomination = std::move(nomination);
  nominated_.insert(job.id);
}

void State::drop_nomination(JobState& job) {
  if (!job.nomination) return;
  nominate_tasks(job, job.nomination->placements, -1);
  nominate_queues(job, job.nomination->amounts, -1);
  for (QueueId q = job.queue; q.valid(); q = queue(q).parent) {
    if (!queue(q).borrowed.empty()) roomier_.insert(q);
  }
  job.nomination.reset();
  nominated_.erase(job.id);
}

void State::on(const NominationDropped& event) {
  JobState& job = existing(event.job);
  drop_nomination(job);
  if (job.in_pending) waits_.wake({job.queue, job.shape});
  unsettled_.insert(event.job);
  ++opportunity_;
}

namespace {

// The queues at which the charge is not within though it is at their child: it may have the room there of what is
// within and borrows at a child.
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
  drop_nomination(job);
  remove_pending(job);
  job.attempts = event.attempt;
  job.phase = JobPhase::kRunning;
  job.expected_s = estimate(*this, job).seconds;
  AttemptState& attempt = job.attempt.emplace();
  attempt.number = event.attempt;
  attempt.started = now_;
  attempt.resized = now_;
  attempt.master_port = event.master_port;
  if (job.start_hold) attempt.held_start = job.start_hold->first_start;
  drop_start_hold(job);
  Charge charge;
  charge.amounts = amounts_of(job.spec, event.placements);
  charge.burst = burst_amounts_of(job.spec, event.placements);
  charge.within = event.within;
  charge.order = last_seq_;
  charge.tasks = static_cast<std::uint32_t>(event.placements.size());
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
  if (job.is_elastic()) elastic_.insert(job.id);
  put_on_probation(job);
  list_running(job, +1);
  if (!job.spec.labels.empty()) ++opportunity_;  // somebody may have waited to be near it
  // Who waits where this one may fall behind by its service has to find out when.
  const QueueState& leaf = queue(job.queue);
  if (!leaf.service_thresholds.empty() && !leaf.pending.empty()) ++opportunity_;
  reset_timer(job);
  notify_dependents(job.id);
  if (!job.parent.valid()) return;
  unsettled_.insert(job.parent);
  JobState& parent = existing(job.parent);
  if (parent.attempts > 0) return;
  parent.attempts = 1;  // a service or array has started when its first part has
  notify_dependents(parent.id);
}

void State::on(const AttemptGrown& event) {
  JobState& job = existing(event.job);
  BERTH_CHECK(job.phase == JobPhase::kRunning);
  AttemptState& attempt = *job.attempt;
  Charge charge;
  charge.amounts = amounts_of(job.spec, event.placements);
  charge.burst = burst_amounts_of(job.spec, event.placements);
  charge.within = event.within;
  charge.order = last_seq_;
  charge.first_task = static_cast<std::uint32_t>(attempt.tasks.size());
  charge.tasks = static_cast<std::uint32_t>(event.placements.size());
  bind_tasks(job, event.placements, +1);
  for (const TaskPlacement& placement : event.placements) {
    node_mut(placement.node).tasks.emplace(job.id, static_cast<std::uint32_t>(attempt.tasks.size()));
    attempt.tasks.push_back({placement, TaskPhase::kBound, 1 + attempt.shrinks, ExitReason::kExited, 0});
  }
  attempt.charges.push_back(charge);
  attempt.resized = now_;
  // What is new has not been held since the start, from which service is counted.
  job.past_service -= checked_multiply(charge.amounts[kDimGpu], now_ - attempt.started);
  charge_queues(job, charge, static_cast<std::uint32_t>(attempt.charges.size() - 1), +1);
  running_table_.set(job);
  note_usage(job.queue);
  touch_load(job.queue);
  reset_departure(job);
  wake_claimants(queue(job.queue), job.priority);
  // Other queues may have a claim to growth, now that there is some.
  if (attempt.charges.size() == 2) waits_.wake_all();
  if (queue(root()).pending_below > 0) ++opportunity_;
}

// Takes the tasks from `keep` on off the books; a charge that is cut in two keeps its first part.
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
  job.past_service += service - service_of(job, now_);  // what was given back had been held until now
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
  unsettled_.insert(job.id);
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
    if ((lost >> queue(q).depth & 1U) != 0) roomier_.insert(q);
  }
  if (lost != 0) ++opportunity_;  // others may claim it from here on
  add_contended(*this, job.queue, charge, roomier_);
}

void State::on(const TaskStarted& event) {
  TaskState& task = existing(event.job).attempt->tasks[event.task];
  BERTH_CHECK(task.phase == TaskPhase::kBound);
  task.phase = TaskPhase::kRunning;
  unsettle_service(existing(event.job));
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
  }
  node_mut(task.placement.node).tasks.erase({job.id, event.task});
  unsettled_.insert(job.id);
}

void State::on(const StopBegan& event) {
  JobState& job = existing(event.job);
  BERTH_CHECK(job.phase == JobPhase::kRunning || (job.attempt->shrinking() && event.keep == 0));
  job.phase = JobPhase::kStopping;
  if (event.keep == 0) job.attempt->signalled = true;
  Stop stop;
  stop.cause = event.cause;
  stop.claimant = event.claimant;
  stop.began = now_;
  stop.deadline = event.deadline;
  stop.exited_before = job.attempt->exited;
  stop.keep = event.keep;
  job.attempt->stop = stop;
  running_table_.set(job);
  const bool evicted = event.keep == 0 && (event.cause == StopCause::kReclaim || event.cause == StopCause::kPreempt);
  if (evicted && config_.scheduling.evictions_per_hour > 0) evictions_.note(now_);
  reset_timer(job);
  reset_departure(job);
  unsettled_.insert(job.id);
}

void State::on(const StopCancelled& event) {
  JobState& job = existing(event.job);
  BERTH_CHECK(job.phase == JobPhase::kStopping);
  job.phase = JobPhase::kRunning;
  job.attempt->stop.reset();
  running_table_.set(job);
  reset_timer(job);
  reset_departure(job);
  unsettled_.insert(job.id);  // it may have been cancelled, or have to stop for another reason, meanwhile
  unsettle_service(job);
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
    unsettled_.insert(job.id);
  }
}

void State::release_attempt(JobState& job) {
  AttemptState& attempt = *job.attempt;
  for (std::uint32_t i = 0; i < attempt.tasks.size(); ++i) {
    const NodeId node_id = attempt.tasks[i].placement.node;
    bind_task(job, attempt.tasks[i].placement, -1);
    node_mut(node_id).tasks.erase({job.id, i});
    const bool last_here = i + 1 == attempt.tasks.size() || attempt.tasks[i + 1].placement.node != node_id;
    if (!last_here) continue;
    refresh_in_indexes(node_id);
    ease(node_id);
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

void State::on(const AttemptEnded& event) {
  JobState& job = existing(event.job);
  AttemptState& attempt = *job.attempt;
  BERTH_CHECK(attempt.number == event.attempt);
  BERTH_CHECK(attempt.all_exited());
  job.past_service = service_of(job, now_);
  release_attempt(job);
  AttemptRecord record;
  record.number = attempt.number;
  record.waited_from = job.waiting_since;
  record.started = attempt.started;
  record.held_start = attempt.held_start;
  record.ended = now_;
  record.outcome = event.outcome;
  if (attempt.stopping()) {
    record.cause = attempt.stop->cause;
    record.claimant = attempt.stop->claimant;
  }
  record.code = event.code;
  record.message = event.message;
  record.checkpoint_step = attempt.checkpoint_step;
  for (const TaskState& task : attempt.tasks) {
    const auto gpus = static_cast<std::int32_t>(task.placement.gpus.size());
    if (!record.gpus_on.empty() && record.gpus_on.back().first == task.placement.node) {
      record.gpus_on.back().second += gpus;
    } else {
      record.gpus_on.emplace_back(task.placement.node, gpus);
    }
  }
  constexpr std::size_t kAttemptsKept = 100;
  if (job.past.size() == kAttemptsKept) job.past.erase(job.past.begin() + 1);  // the first one and the latest tell most
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
  unsettled_.insert(job.id);
  ++opportunity_;
}

// What came to its own end tells how long its like run; what berth or a fault cut short does not. Work that was saved
// when an attempt had to leave counts, because the next one went on from there.
void State::learn_run_time(const JobState& job, Outcome outcome) {
  const JobState* parent = jobs_.find(job.parent);
  if (parent != nullptr && parent->spec.kind == JobKind::kService) return;
  if (outcome == Outcome::kPreempted || outcome == Outcome::kNodeLost || outcome == Outcome::kStartFailed) return;
  std::int64_t ran_ms = now_ - job.past.back().started;
  for (std::size_t i = 0; i + 1 < job.past.size() && job.spec.checkpoint.on_signal; ++i) {
    const AttemptRecord& attempt = job.past[i];
    if (attempt.outcome == Outcome::kPreempted) ran_ms += attempt.ended - attempt.started;
  }
  run_times_.learn(job.spec, (ran_ms + 999) / 1000);
}

void State::on(const JobRequeued& event) {
  JobState& job = existing(event.job);
  job.not_before = event.not_before;
  job.shape = lane_of(job);
  if (!planted(Bug::kPendingLost)) enter_line(job);
  touch_load(job.queue);  // not when its attempt ended: then it did not wait yet
  reset_timer(job);
  unsettle_service(job);  // which may be at another version by now
}

void State::on(const JobFinished& event) {
  JobState& job = existing(event.job);
  BERTH_CHECK(!job.attempt.has_value());
  drop_nomination(job);
  drop_start_hold(job);
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
    unsettled_.insert(parent->id);
  }
  children_.erase(job.id);
  unsettled_.erase(job.id);
  finished_.insert(event.job, {event.outcome, event.code});
  jobs_.erase(event.job);
  notify_dependents(event.job);
  if (finished_.size() > kFinishedRemembered) finished_.erase(finished_.first());
  ++opportunity_;
}

void State::on(const CycleRan&) {}

void State::on(const FragmentationAlarm& event) { fragmentation_alarm_ = event.raised; }

fragmentation::Request State::request_of(const TaskRequest& request) const {
  fragmentation::Request seen{request.cpu_milli, request.gpus,
                              request.gpus > 0 ? request.gpu_milli : fragmentation::kWholeGpu,
                              request.gpu_models.empty() ? fragmentation::kAnyModel : 0};
  for (const std::string& name : request.gpu_models) {
    if (const auto model = gpu_model_named(name)) seen.models |= fragmentation::ModelMask{1} << model->index();
  }
  return seen;
}

// Every task is asked for once, when its job is submitted; a gang of thousands does not outweigh everybody else.
void State::learn_mix(const JobState& job) {
  constexpr std::int32_t kTasksCounted = 64;
  if (job.is_parent()) return;
  for (const TaskGroup& group : job.spec.groups) {
    fragmentation_.observe(request_of(group.request), std::min(group.count, kTasksCounted));
  }
}

// --- holds of a start ----------------------------------------------------------------------------------------------

void State::on(const StartHeld& event) {
  JobState& job = existing(event.job);
  BERTH_CHECK(job.phase == JobPhase::kPending && !job.nomination);
  const Timestamp first = job.start_hold ? job.start_hold->first_start : event.start;
  if (job.start_hold) {  // what the earlier one kept back may be used
    waits_.ease_holds();
    ++opportunity_;
  }
  job.start_hold = StartHold{event.placements, event.start, now_, first};
  start_holds_.insert(job.id);
}

void State::drop_start_hold(JobState& job) {
  if (!job.start_hold) return;
  job.start_hold.reset();
  start_holds_.erase(job.id);
  starts_sought_.reset();
  if (!planted(Bug::kHoldNotTold)) waits_.ease_holds();
  ++opportunity_;
}

void State::on(const StartHoldDropped& event) { drop_start_hold(existing(event.job)); }

void State::on(const StartsSought&) { starts_sought_ = now_; }

}  // namespace berth::state
