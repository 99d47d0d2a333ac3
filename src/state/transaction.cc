#include "state/transaction.h"

#include <limits>
#include <utility>

namespace berth::state {

void Transaction::bind(JobId id, const Undo& entry, int sign) {
  const JobState& job = *state_.job(id);
  state_.bind_tasks(job, entry.placements, sign);
  if (entry.shrunk && sign > 0) state_.charge_queues(job, *entry.shrunk, entry.first_charge, -1);
  for (std::uint32_t i = 0; i < entry.charges.size(); ++i) {
    state_.charge_queues(job, entry.charges[i], entry.first_charge + i, sign);
  }
  if (entry.shrunk && sign < 0) state_.charge_queues(job, *entry.shrunk, entry.first_charge, +1);
}

void Transaction::nominate(JobId id, const Undo& entry, int sign) {
  const JobState& job = *state_.job(id);
  state_.nominate_tasks(job, entry.placements, sign);
  state_.nominate_queues(job, entry.amounts, entry.within, sign);
}

void Transaction::place(JobId id, std::span<const TaskPlacement> placements) { bind_more(id, placements, 0); }

void Transaction::grow(JobId id, std::span<const TaskPlacement> placements) {
  const JobState& job = *state_.job(id);
  bind_more(id, placements, job.attempt ? static_cast<std::uint32_t>(job.attempt->charges.size()) : 1);
}

namespace {

// Returns the charge of a start or a scale-up. Guarantees are filled in start order, and a new charge comes last.
Charge topmost_charge(const State& state, const JobState& job, std::span<const TaskPlacement> placements) {
  Charge charge;
  charge.amounts = state.amounts_of(job.spec, placements);
  charge.burst = state.burst_amounts_of(job.spec, placements);
  charge.within = charge.burst ? 1 : state.within_when_started(job, charge.amounts);
  charge.order = std::numeric_limits<Seq>::max();
  charge.tasks = static_cast<std::uint32_t>(placements.size());
  return charge;
}

}  // namespace

// Adds the job to the running jobs that searches read, or removes it. It marks nothing as freed, because a transaction
// is rolled back.
void Transaction::list(JobState& job, int sign) {
  auto& running = state_.queue_mut(job.queue).running;
  if (sign > 0) {
    running[job.priority].insert(job.id);
    state_.running_table_.set(job);
    return;
  }
  state_.running_table_.erase(job, [&](JobId moved) -> JobState& { return state_.existing(moved); });
  const auto equals = running.find(job.priority);
  equals->second.erase(job.id);
  if (equals->second.empty()) running.erase(equals);
}

void Transaction::start(JobId id, std::span<const TaskPlacement> placements) {
  JobState& job = state_.existing(id);
  BERTH_CHECK(job.phase == JobPhase::kPending);
  Undo entry{Step::kStarted, id, {placements.begin(), placements.end()}};
  entry.charges.push_back(topmost_charge(state_, job, placements));
  bind(id, entry, +1);
  job.phase = JobPhase::kRunning;
  AttemptState& attempt = job.attempt.emplace();
  attempt.number = job.attempts + 1;
  attempt.started = attempt.resized = state_.asked_at();
  for (const TaskPlacement& placement : placements) attempt.tasks.push_back({placement, TaskPhase::kBound});
  attempt.charges = entry.charges;
  list(job, +1);
  undo_.push_back(std::move(entry));
}

void Transaction::cancel_eviction(JobId id) {
  JobState& job = state_.existing(id);
  BERTH_CHECK(job.phase == JobPhase::kStopping);
  Undo entry{Step::kEvictionCancelled, id};
  entry.stop = std::exchange(job.attempt->stop, std::nullopt);
  if (state_.evictions_.forget(entry.stop->began)) entry.counted |= 1U;
  for (QueueId q = state_.limits_evictions(job.queue); q.valid(); q = state_.next_limit(q)) {
    QueueState& queue = state_.queue_mut(q);
    if (queue.evictions.forget(entry.stop->began)) entry.counted |= std::uint64_t{1} << queue.depth;
  }
  job.phase = JobPhase::kRunning;
  state_.running_table_.set(job);
  undo_.push_back(std::move(entry));
}

void Transaction::bind_more(JobId id, std::span<const TaskPlacement> placements, std::uint32_t index) {
  const JobState& job = *state_.job(id);
  Undo entry{Step::kPlaced, id, {placements.begin(), placements.end()}};
  entry.first_charge = index;
  entry.charges.push_back(topmost_charge(state_, job, placements));
  bind(id, entry, +1);
  bindings_.push_back(undo_.size());
  undo_.push_back(std::move(entry));
}

void Transaction::remove(JobId id) {
  Undo entry{Step::kRemoved, id};
  const JobState& job = *state_.job(id);
  if (job.attempt) {
    for (const TaskState& task : job.attempt->tasks) entry.placements.push_back(task.placement);
    entry.charges = job.attempt->charges;
  }
  for (const std::size_t place : bindings_) {
    const Undo& earlier = undo_[place];
    if (earlier.job != id) continue;
    if (earlier.step == Step::kPlaced) {
      entry.placements.insert(entry.placements.end(), earlier.placements.begin(), earlier.placements.end());
      entry.charges.insert(entry.charges.end(), earlier.charges.begin(), earlier.charges.end());
    } else {
      entry.placements.resize(entry.placements.size() - earlier.placements.size());
      entry.charges.resize(earlier.first_charge);
      if (earlier.shrunk) entry.charges.push_back(*earlier.shrunk);
    }
  }
  bind(id, entry, -1);
  undo_.push_back(std::move(entry));
}

void Transaction::shrink(JobId id, std::uint32_t keep) {
  const JobState& job = *state_.job(id);
  const AttemptState& attempt = *job.attempt;
  BERTH_CHECK(keep > 0);
  Undo entry{Step::kShrunk, id};
  for (std::size_t t = keep; t < attempt.tasks.size(); ++t) entry.placements.push_back(attempt.tasks[t].placement);
  while (attempt.charges[entry.first_charge].first_task + attempt.charges[entry.first_charge].tasks <= keep) {
    ++entry.first_charge;
  }
  entry.charges.assign(attempt.charges.begin() + entry.first_charge, attempt.charges.end());
  if (entry.charges.front().first_task < keep) {
    Charge rest = entry.charges.front();
    rest.tasks = keep - rest.first_task;
    std::vector<TaskPlacement> placements;
    for (std::uint32_t t = rest.first_task; t < keep; ++t) placements.push_back(attempt.tasks[t].placement);
    rest.amounts = state_.amounts_of(job.spec, placements);
    rest.burst = state_.burst_amounts_of(job.spec, placements);
    entry.shrunk = rest;
  }
  bind(id, entry, -1);
  bindings_.push_back(undo_.size());
  undo_.push_back(std::move(entry));
}

void Transaction::lift_nomination(JobId id) {
  const JobState& job = *state_.job(id);
  BERTH_CHECK(job.nomination.has_value());
  Undo entry{Step::kLifted, id, job.nomination->placements};
  entry.amounts = job.nomination->amounts;
  entry.within = job.nomination->within;
  nominate(id, entry, -1);
  undo_.push_back(std::move(entry));
}

void Transaction::nominate(JobId id, std::span<const TaskPlacement> placements, std::uint64_t within) {
  Undo entry{Step::kNominated, id, {placements.begin(), placements.end()}};
  entry.amounts = state_.amounts_of(state_.job(id)->spec, placements);
  entry.within = within;
  nominate(id, entry, +1);
  undo_.push_back(std::move(entry));
}

void Transaction::set_aside(JobId owner, std::span<const TaskPlacement> placements) {
  Undo entry{Step::kSetAside, owner, {placements.begin(), placements.end()}};
  state_.nominate_tasks(*state_.job(owner), entry.placements, +1);
  undo_.push_back(std::move(entry));
}

void Transaction::drop_reservation(JobId owner) {
  JobState& job = state_.existing(owner);
  BERTH_CHECK(job.reservation.has_value());
  Undo& entry = undo_.emplace_back();
  entry.step = Step::kReservationDropped;
  entry.job = owner;
  entry.hold = std::exchange(job.reservation, std::nullopt);
  state_.reservations_.erase(owner);
}

void Transaction::set_max(QueueId id, std::size_t dim, std::int64_t amount) {
  std::int64_t& limit = state_.queue_mut(id).max[dim];
  Undo entry;
  entry.step = Step::kMaxSet;
  entry.queue = id;
  entry.dim = dim;
  entry.before = std::exchange(limit, amount);
  undo_.push_back(std::move(entry));
}

void Transaction::set_lending_limit(QueueId id, std::size_t dim, std::int64_t amount) {
  std::int64_t& limit = state_.queue_mut(id).lending_limit[dim];
  Undo entry;
  entry.step = Step::kLendingSet;
  entry.queue = id;
  entry.dim = dim;
  entry.before = std::exchange(limit, amount);
  undo_.push_back(std::move(entry));
}

namespace {

std::int64_t& user_limit(QueueState& queue, std::size_t dim) {
  return dim == kDims ? queue.max_jobs_per_user : queue.max_gpu_milli_per_user;
}

}  // namespace

void Transaction::set_user_limit(QueueId id, std::size_t dim, std::int64_t amount) {
  Undo entry;
  entry.step = Step::kUserLimitSet;
  entry.queue = id;
  entry.dim = dim;
  entry.before = std::exchange(user_limit(state_.queue_mut(id), dim), amount);
  undo_.push_back(std::move(entry));
}

void Transaction::uncordon(NodeId id) {
  BERTH_CHECK(state_.node(id).cordoned);
  Undo entry;
  entry.step = Step::kUncordoned;
  entry.node = id;
  state_.set_cordoned(id, false);
  undo_.push_back(std::move(entry));
}

void Transaction::cordon(NodeId id) {
  BERTH_CHECK(!state_.node(id).cordoned);
  Undo entry;
  entry.step = Step::kCordoned;
  entry.node = id;
  state_.set_cordoned(id, true);
  undo_.push_back(std::move(entry));
}

void Transaction::add_node(const NodeSpec& spec) {
  state_.add_for_a_transaction(spec);
  Undo entry;
  entry.step = Step::kNodeAdded;
  undo_.push_back(std::move(entry));
}

void Transaction::look_at(Timestamp when) {
  Undo entry;
  entry.step = Step::kLookedAt;
  entry.when = std::exchange(state_.asked_at_, when);
  undo_.push_back(std::move(entry));
}

void Transaction::look_until(Timestamp latest) {
  Undo entry;
  entry.step = Step::kLookedUntil;
  entry.when = std::exchange(state_.asked_until_, latest);
  undo_.push_back(std::move(entry));
}

void Transaction::end_windows(Timestamp by) {
  for (const auto& [name, window] : state_.maintenance()) {
    if (!window.begun || window.to > by) continue;
    for (const NodeId id : window.nodes) {
      Undo entry;
      entry.step = Step::kReopened;
      entry.node = id;
      --state_.node_mut(id).maintained;
      state_.refresh_in_indexes(id);
      undo_.push_back(std::move(entry));
    }
  }
}

void Transaction::undo_change(const Undo& entry) {
  if (entry.step == Step::kStarted) {
    JobState& job = state_.existing(entry.job);
    list(job, -1);
    job.attempt.reset();
    job.phase = JobPhase::kPending;
    bind(entry.job, entry, -1);
  }
  if (entry.step == Step::kEvictionCancelled) {
    JobState& job = state_.existing(entry.job);
    job.attempt->stop = entry.stop;
    if ((entry.counted & 1U) != 0) state_.evictions_.recall(entry.stop->began);
    for (QueueId q = state_.limits_evictions(job.queue); q.valid(); q = state_.next_limit(q)) {
      QueueState& queue = state_.queue_mut(q);
      if ((entry.counted >> queue.depth & 1U) != 0) queue.evictions.recall(entry.stop->began);
    }
    job.phase = JobPhase::kStopping;
    state_.running_table_.set(job);
  }
  if (entry.step == Step::kReservationDropped) {
    state_.existing(entry.job).reservation = entry.hold;
    state_.reservations_.insert(entry.job);
  }
  if (entry.step == Step::kMaxSet) state_.queue_mut(entry.queue).max[entry.dim] = entry.before;
  if (entry.step == Step::kLendingSet) state_.queue_mut(entry.queue).lending_limit[entry.dim] = entry.before;
  if (entry.step == Step::kUserLimitSet) user_limit(state_.queue_mut(entry.queue), entry.dim) = entry.before;
  if (entry.step == Step::kLookedAt) state_.asked_at_ = entry.when;
  if (entry.step == Step::kLookedUntil) state_.asked_until_ = entry.when;
  if (entry.step == Step::kNodeAdded) state_.remove_after_a_transaction();
  if (entry.step == Step::kUncordoned) state_.set_cordoned(entry.node, true);
  if (entry.step == Step::kCordoned) state_.set_cordoned(entry.node, false);
  if (entry.step == Step::kReopened) {
    ++state_.node_mut(entry.node).maintained;
    state_.refresh_in_indexes(entry.node);
  }
}

void Transaction::rollback_to(Mark mark) {
  while (undo_.size() > mark) {
    const Undo entry = std::move(undo_.back());
    undo_.pop_back();
    if (!bindings_.empty() && bindings_.back() == undo_.size()) bindings_.pop_back();
    switch (entry.step) {
      case Step::kPlaced:
        bind(entry.job, entry, -1);
        break;
      case Step::kRemoved:
      case Step::kShrunk:
        bind(entry.job, entry, +1);
        break;
      case Step::kLifted:
        nominate(entry.job, entry, +1);
        break;
      case Step::kNominated:
        nominate(entry.job, entry, -1);
        break;
      case Step::kSetAside:
        state_.nominate_tasks(*state_.job(entry.job), entry.placements, -1);
        break;
      case Step::kStarted:
      case Step::kEvictionCancelled:
      case Step::kReservationDropped:
      case Step::kMaxSet:
      case Step::kLendingSet:
      case Step::kUserLimitSet:
      case Step::kUncordoned:
      case Step::kCordoned:
      case Step::kNodeAdded:
      case Step::kReopened:
      case Step::kLookedAt:
      case Step::kLookedUntil:
        undo_change(entry);
        break;
    }
  }
}

bool Transaction::holds(JobId job) const {
  bool placed = false;
  for (const Undo& entry : undo_) {
    if (entry.job == job && entry.step == Step::kPlaced) placed = true;
    if (entry.job == job && entry.step == Step::kRemoved) placed = false;
  }
  return placed;
}

bool Transaction::removed(JobId job) const {
  for (const Undo& entry : undo_) {
    if (entry.job == job && entry.step == Step::kRemoved) return true;
  }
  return false;
}

}  // namespace berth::state
