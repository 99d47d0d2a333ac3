#include "state/trial.h"

#include <limits>
#include <utility>

namespace berth::state {

void Trial::bind(JobId id, const Undo& entry, int sign) {
  const JobState& job = *state_.job(id);
  state_.bind_tasks(job, entry.placements, sign);
  for (std::uint32_t i = 0; i < entry.charges.size(); ++i) state_.charge_queues(job, entry.charges[i], i, sign);
}

void Trial::nominate(JobId id, const Undo& entry, int sign) {
  const JobState& job = *state_.job(id);
  state_.nominate_tasks(entry.placements, sign);
  state_.nominate_queues(job, entry.amounts, sign);
}

void Trial::place(JobId id, std::span<const TaskPlacement> placements) {
  const JobState& job = *state_.job(id);
  Undo entry{Step::kPlaced, id, {placements.begin(), placements.end()}};
  Charge charge;
  charge.amounts = state_.amounts_of(job.spec, placements);
  charge.within = state_.within_mask(job.queue, charge.amounts);
  charge.order = std::numeric_limits<Seq>::max();
  charge.tasks = static_cast<std::uint32_t>(placements.size());
  entry.charges.push_back(charge);
  bind(id, entry, +1);
  undo_.push_back(std::move(entry));
}

void Trial::remove(JobId id) {
  Undo entry{Step::kRemoved, id};
  const JobState& job = *state_.job(id);
  if (job.attempt) {
    for (const TaskState& task : job.attempt->tasks) entry.placements.push_back(task.placement);
    entry.charges = job.attempt->charges;
  } else {
    for (const Undo& earlier : undo_) {
      if (earlier.job != id || earlier.step != Step::kPlaced) continue;
      entry.placements = earlier.placements;
      entry.charges = earlier.charges;
    }
  }
  bind(id, entry, -1);
  undo_.push_back(std::move(entry));
}

void Trial::lift_nomination(JobId id) {
  const JobState& job = *state_.job(id);
  BERTH_CHECK(job.nomination.has_value());
  Undo entry{Step::kLifted, id, job.nomination->placements, {}, job.nomination->amounts};
  nominate(id, entry, -1);
  undo_.push_back(std::move(entry));
}

void Trial::nominate(JobId id, std::span<const TaskPlacement> placements) {
  Undo entry{Step::kNominated, id, {placements.begin(), placements.end()}};
  entry.amounts = state_.amounts_of(state_.job(id)->spec, placements);
  nominate(id, entry, +1);
  undo_.push_back(std::move(entry));
}

void Trial::set_max(QueueId id, std::size_t dim, std::int64_t amount) {
  std::int64_t& limit = state_.queue_mut(id).max[dim];
  Undo entry;
  entry.step = Step::kMaxSet;
  entry.queue = id;
  entry.dim = dim;
  entry.before = std::exchange(limit, amount);
  undo_.push_back(std::move(entry));
}

void Trial::set_lending_limit(QueueId id, std::size_t dim, std::int64_t amount) {
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

void Trial::set_user_limit(QueueId id, std::size_t dim, std::int64_t amount) {
  Undo entry;
  entry.step = Step::kUserLimitSet;
  entry.queue = id;
  entry.dim = dim;
  entry.before = std::exchange(user_limit(state_.queue_mut(id), dim), amount);
  undo_.push_back(std::move(entry));
}

void Trial::uncordon(NodeId id) {
  BERTH_CHECK(state_.node(id).cordoned);
  Undo entry;
  entry.step = Step::kUncordoned;
  entry.node = id;
  state_.set_cordoned(id, false);
  undo_.push_back(std::move(entry));
}

void Trial::undo_change(const Undo& entry) {
  if (entry.step == Step::kMaxSet) state_.queue_mut(entry.queue).max[entry.dim] = entry.before;
  if (entry.step == Step::kLendingSet) state_.queue_mut(entry.queue).lending_limit[entry.dim] = entry.before;
  if (entry.step == Step::kUserLimitSet) user_limit(state_.queue_mut(entry.queue), entry.dim) = entry.before;
  if (entry.step == Step::kUncordoned) state_.set_cordoned(entry.node, true);
}

void Trial::rollback_to(Mark mark) {
  while (undo_.size() > mark) {
    const Undo entry = std::move(undo_.back());
    undo_.pop_back();
    switch (entry.step) {
      case Step::kPlaced:
        bind(entry.job, entry, -1);
        break;
      case Step::kRemoved:
        bind(entry.job, entry, +1);
        break;
      case Step::kLifted:
        nominate(entry.job, entry, +1);
        break;
      case Step::kNominated:
        nominate(entry.job, entry, -1);
        break;
      case Step::kMaxSet:
      case Step::kLendingSet:
      case Step::kUserLimitSet:
      case Step::kUncordoned:
        undo_change(entry);
        break;
    }
  }
}

bool Trial::holds(JobId job) const {
  bool placed = false;
  for (const Undo& entry : undo_) {
    if (entry.job == job && entry.step == Step::kPlaced) placed = true;
    if (entry.job == job && entry.step == Step::kRemoved) placed = false;
  }
  return placed;
}

bool Trial::removed(JobId job) const {
  for (const Undo& entry : undo_) {
    if (entry.job == job && entry.step == Step::kRemoved) return true;
  }
  return false;
}

}  // namespace berth::state
