#include "sched/backfill/earliest_start.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <set>
#include <utility>

#include "base/checked.h"
#include "sched/start.h"
#include "state/estimate.h"
#include "state/replicas.h"

namespace berth::sched {

namespace {

using state::JobState;
using state::State;
using state::Transaction;

constexpr std::size_t kMostTurningPoints = 64;  // each costs a search for places; the time after the last counts as one

// Returns by when maintenance makes the job leave the node: when the next window begins. Returns never() for a replica
// of a service with max_unavailable, which may stay into the window.
Timestamp moved_by(const State& state, const JobState& job, NodeId node, Timestamp now) {
  const JobState* service = state::service_of(state, job);
  if (service != nullptr && service->spec.max_unavailable > 0) return Timestamp::never();
  for (const state::ClosedSpan& span : state.node(node).maintenance) {
    if (span.from > now) return span.from;
  }
  return Timestamp::never();
}

void leaves_by(ExpectedEnd& one, Timestamp when) {
  one.expected = std::min(one.expected, when);
  one.certain = std::min(one.certain, when);
}

// Returns the ends of a running job.
ExpectedEnd expected_end(const State& state, const state::RunningRow& row, Timestamp now, state::ExpectedEnds& ends) {
  ExpectedEnd one{row.job, ends.of(row)};
  const JobState* job = row.plain && state.maintenance().empty() ? nullptr : state.job(row.job);
  if (job == nullptr ? row.timed : state::ends_for_certain(state, *job)) one.certain = one.expected;
  if (state.maintenance().empty()) return one;
  for (const state::TaskState& task : job->attempt->tasks)
    leaves_by(one, moved_by(state, *job, task.placement.node, now));
  return one;
}

// Returns the times at which a start of the job becomes possible or impossible although no job starts or ends: a window
// ends, or it comes too near. At most the first kMostTurningPoints.
std::set<Timestamp> turning_points(const State& state, const JobState& job) {
  std::set<Timestamp> turning_points;
  if (state.maintenance().empty()) return turning_points;
  const RunWindow stay = *task_requirements(state, job, 0, kAllModels).stay;
  std::optional<std::int64_t> before_ms;
  if (!stay.gone.is_never()) before_ms = stay.gone - stay.start;
  if (stay.moves) before_ms = std::min(before_ms.value_or(stay.least_ms), stay.least_ms);
  for (const auto& [name, window] : state.maintenance()) {
    turning_points.insert(window.to);
    if (before_ms) turning_points.insert(Timestamp{window.from.ms - *before_ms + 1});
  }
  turning_points.erase(turning_points.begin(), turning_points.upper_bound(state.asked_at()));
  while (turning_points.size() > kMostTurningPoints) turning_points.erase(std::prev(turning_points.end()));
  return turning_points;
}

// PrefixSearch: removes running jobs in the order of their ends and finds the shortest prefix after which the job fits.
// The length is doubled and then halved, so few searches for places are needed. If there are windows, this is done
// between one turning point and the next. Placement is greedy, so by luck a shorter prefix might do as well; the one
// found does.
class PrefixSearch {
 public:
  PrefixSearch(Transaction& transaction, State& state, JobId job, SearchStats& work, ReleasesInOrder& releases,
               Timestamp now)
      : transaction_(transaction),
        state_(state),
        job_(*state.job(job)),
        work_(work),
        releases_(releases),
        now_(now),
        turning_points_(turning_points(state, job_)) {}

  std::optional<ReserveDecision> run() {
    const Transaction::Mark begin = transaction_.mark();
    std::optional<ReserveDecision> found;
    for (std::size_t first = 0; !found && releases_.work_out(first + 1, work_) > first;) {
      const auto turning_point = turning_points_.upper_bound(time_of(first + 1));
      found = after(first, turning_point == turning_points_.end() ? Timestamp::never() : *turning_point);
    }
    transaction_.rollback_to(begin);
    return found;
  }

 private:
  Timestamp time_of(std::size_t count) const { return std::max(now_, releases_[count - 1].when); }

  // Returns `count`, or the number of releases before the turning point if that is less.
  std::size_t before(Timestamp turning_point, std::size_t count) {
    count = releases_.work_out(count, work_);
    while (count > 0 && time_of(count) >= turning_point) --count;
    return count;
  }

  // Searches prefixes longer than `first` that end before the turning point. If none will do, `first` becomes the
  // number of releases before it, and their jobs stay removed.
  std::optional<ReserveDecision> after(std::size_t& first, Timestamp turning_point) {
    std::size_t low = first;  // does not fit after this many
    std::size_t high = first + 1;
    std::optional<std::vector<TaskPlacement>> found;
    while ((high = before(turning_point, high)) > low && !(found = places_after(high))) {
      low = high;
      high += high - first;
    }
    while (found && low + 1 < high) {
      const std::size_t middle = low + (high - low) / 2;
      if (auto earlier = places_after(middle)) {
        found = std::move(earlier);
        high = middle;
      } else {
        low = middle;
      }
    }
    first = low;
    if (!found) return std::nullopt;
    return ReserveDecision{job_.id, std::move(*found), time_of(high)};
  }

  // Removes the jobs of the first `count` releases, and no others.
  void remove(std::size_t count) {
    if (count < marks_.size()) {
      transaction_.rollback_to(marks_[count]);
      marks_.resize(count);
    }
    while (marks_.size() < count) {
      const JobId job = releases_[marks_.size()].job;
      marks_.push_back(transaction_.mark());
      if (job.valid()) transaction_.remove(job);
    }
  }

  // Returns the job's places after `count` releases. It would start at the time of the last one, so maintenance counts
  // as of that time.
  std::optional<std::vector<TaskPlacement>> places_after(std::size_t count) {
    remove(count);
    const Transaction::Mark mark = transaction_.mark();
    look_ahead(transaction_, time_of(count), now_);
    const StartQuestion question{state_, job_, now_, work_};
    auto found = find_places(question.only_whether()).placements;
    transaction_.rollback_to(mark);
    return found;
  }

  Transaction& transaction_;
  State& state_;
  const JobState& job_;
  SearchStats& work_;
  ReleasesInOrder& releases_;
  Timestamp now_;
  std::set<Timestamp> turning_points_;
  std::vector<Transaction::Mark> marks_;  // one before each removed job
};

}  // namespace

ExpectedEnd expected_end(const State& state, const JobState& job, std::span<const TaskPlacement> placements,
                         Timestamp now) {
  ExpectedEnd one{job.id};
  const std::int64_t expected_s = state::expected_run_s(state, job);
  if (expected_s > 0) one.expected = now + expected_s * 1000 + state::grace_after_limit_ms(state, job);
  if (state::ends_for_certain(state, job)) one.certain = one.expected;
  if (state.maintenance().empty()) return one;
  for (const TaskPlacement& placement : placements) leaves_by(one, moved_by(state, job, placement.node, now));
  return one;
}

ReleasesInOrder::ReleasesInOrder(const State& state, Timestamp now, const std::vector<ExpectedEnd>& starting,
                                 bool by_estimates, SearchStats& work)
    : state_(state), now_(now), by_estimates_(by_estimates), ends_(state, now) {
  for (const auto& [name, window] : state.maintenance()) {
    heap_.push_back({{window.to, JobId::none()}});
    if (window.from > now) next_window_ = std::min(next_window_, window.from);
  }
  for (const ExpectedEnd& one : starting) heap_.push_back({{by_estimates ? one.expected : one.certain, one.job}});
  const auto rows = state.running_table().rows();
  for (std::uint32_t place = 0; place < rows.size(); ++place) {
    Entry& entry = heap_.emplace_back(Entry{{earliest_end(rows[place]), rows[place].job}, place});
    if (entry.release.when <= now) work_out(entry, work);  // its turn would come first
  }
  std::erase_if(heap_, [](const Entry& entry) { return entry.release.when.is_never(); });
  std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
}

Timestamp ReleasesInOrder::earliest_end(const state::RunningRow& row) const {
  if (!by_estimates_ && !row.timed) return next_window_;
  return std::min(state::expected_end_at_least(row, now_), next_window_);
}

void ReleasesInOrder::work_out(Entry& entry, SearchStats& work) {
  ++work.ends_worked_out;
  const ExpectedEnd end = expected_end(state_, state_.running_table().rows()[entry.row], now_, ends_);
  entry.release.when = by_estimates_ ? end.expected : end.certain;
  entry.row = kExact;
}

std::size_t ReleasesInOrder::work_out(std::size_t count, SearchStats& work) {
  while (in_order_.size() < count && !heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    Entry& first = heap_.back();
    if (first.row == kExact) {
      in_order_.push_back(first.release);
      heap_.pop_back();
      continue;
    }
    work_out(first, work);
    if (first.release.when.is_never()) {
      heap_.pop_back();
    } else {
      std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
    }
  }
  return std::min(count, in_order_.size());
}

ReleasesInOrder& Releases::in_order(bool by_estimates, SearchStats& work) {
  std::optional<ReleasesInOrder>& known = releases_[by_estimates ? 1 : 0];
  return known ? *known : known.emplace(state_, now_, starting_, by_estimates, work);
}

std::optional<ReserveDecision> earliest_start(Transaction& transaction, State& state, JobId job, Timestamp now,
                                              Releases& releases, SearchStats& work) {
  const bool by_estimates = trusts_estimates(state, *state.job(job), now);
  return PrefixSearch(transaction, state, job, work, releases.in_order(by_estimates, work), now).run();
}

bool trusts_estimates(const State& state, const JobState& job, Timestamp now) {
  return trusts_estimates(state, std::max(job.waiting_since, job.not_before), now);
}

bool trusts_estimates(const State& state, Timestamp waits_since, Timestamp now) {
  return now - waits_since >= checked_multiply(state.config().scheduling.backfill_after_s, 1000);
}

void look_ahead(Transaction& transaction, Timestamp when, Timestamp now) {
  transaction.look_at(std::max(now, when));
  transaction.end_windows(std::max(now, when));
}

}  // namespace berth::sched
