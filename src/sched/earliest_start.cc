#include "sched/earliest_start.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "base/checked.h"
#include "sched/fit.h"
#include "state/estimate.h"
#include "state/replicas.h"

namespace berth::sched {

namespace {

using state::JobState;
using state::State;
using state::Trial;

constexpr std::size_t kMostTurns = 64;  // each costs a search for places at least; behind them windows count as one

// When a window has made a job leave the node at the latest: what has not ended is moved away before it begins. Who
// serves may stay into the window, as far as its service's limit says so.
Timestamp moved_by(const State& state, const JobState& job, NodeId node, Timestamp now) {
  const JobState* service = state::service_of(state, job);
  if (service != nullptr && service->spec.max_unavailable > 0) return Timestamp::never();
  for (const state::ClosedSpan& span : state.node(node).maintenance) {
    if (span.from > now) return span.from;
  }
  return Timestamp::never();
}

void leaves_by(Ending& one, Timestamp when) {
  one.expected = std::min(one.expected, when);
  one.certain = std::min(one.certain, when);
}

Ending ending(const State& state, const JobState& running, Timestamp now) {
  Ending one{running.id, state::expected_end(state, running, now)};
  if (state::ends_for_certain(state, running)) one.certain = one.expected;
  if (state.maintenance().empty()) return one;
  for (const state::TaskState& task : running.attempt->tasks)
    leaves_by(one, moved_by(state, running, task.placement.node, now));
  return one;
}

// The times at which a start of the job becomes possible or impossible though nobody comes or goes: windows are over,
// and come too near. The first of them.
std::set<Timestamp> turns(const State& state, const JobState& job) {
  std::set<Timestamp> turns;
  if (state.maintenance().empty()) return turns;
  const Stay stay = *task_ask(state, job, 0, kAllModels).stay;
  std::optional<std::int64_t> before_ms;
  if (!stay.gone.is_never()) before_ms = stay.gone - stay.start;
  if (stay.moves) before_ms = std::min(before_ms.value_or(stay.least_ms), stay.least_ms);
  for (const auto& [name, window] : state.maintenance()) {
    turns.insert(window.to);
    if (before_ms) turns.insert(Timestamp{window.from.ms - *before_ms + 1});
  }
  turns.erase(turns.begin(), turns.upper_bound(state.asked_at()));
  while (turns.size() > kMostTurns) turns.erase(std::prev(turns.end()));
  return turns;
}

// Removes what runs, in the order of the expected ends, and finds the shortest prefix after which the job fits: by
// doubling, then by halving, so that a few searches for places are enough; where there are windows, between one turn
// and the next. Places are judged greedily, so a shorter prefix might do by luck; the one that is found does.
class PrefixSearch {
 public:
  PrefixSearch(Trial& trial, State& state, JobId job, PlaceWork& work, const std::vector<Relief>& reliefs,
               Timestamp now)
      : trial_(trial),
        state_(state),
        job_(*state.job(job)),
        work_(work),
        reliefs_(reliefs),
        now_(now),
        turns_(turns(state, job_)) {}

  std::optional<HoldDecision> run() {
    const Trial::Mark begin = trial_.mark();
    std::optional<HoldDecision> found;
    for (std::size_t first = 0; first < reliefs_.size() && !found;) {
      const std::size_t last = up_to_next_turn(first);
      found = between(first, last);
      first = last;
    }
    trial_.rollback_to(begin);
    return found;
  }

 private:
  Timestamp time_of(std::size_t count) const { return std::max(now_, reliefs_[count - 1].when); }

  std::size_t up_to_next_turn(std::size_t first) const {
    const auto turn = turns_.upper_bound(time_of(first + 1));
    std::size_t last = first + 1;
    while (last < reliefs_.size() && (turn == turns_.end() || time_of(last + 1) < *turn)) ++last;
    return last;
  }

  // After more than `first` of them, whose jobs are removed, and no more than `last`; these are removed when it is not
  // found.
  std::optional<HoldDecision> between(std::size_t first, std::size_t last) {
    std::size_t low = first;  // does not fit after this many
    std::size_t high = first + 1;
    Trial::Mark low_mark = trial_.mark();
    std::size_t removed = first;
    std::optional<std::vector<TaskPlacement>> found;
    while (low < last) {
      high = std::min(high, last);
      remove_up_to(removed, high);
      if ((found = places_after(high))) break;
      low = high;
      low_mark = trial_.mark();
      high += high - first;
    }
    while (found && low + 1 < high) {
      const std::size_t middle = low + (high - low) / 2;
      trial_.rollback_to(low_mark);
      removed = low;
      remove_up_to(removed, middle);
      if (auto earlier = places_after(middle)) {
        found = std::move(earlier);
        high = middle;
      } else {
        low = middle;
        low_mark = trial_.mark();
      }
    }
    if (!found) return std::nullopt;
    return HoldDecision{job_.id, std::move(*found), time_of(high)};
  }

  void remove_up_to(std::size_t& removed, std::size_t count) {
    for (; removed < count; ++removed) {
      if (reliefs_[removed].job.valid()) trial_.remove(reliefs_[removed].job);
    }
  }

  // It would start when the last of them has ended: what maintenance closes until then or after is for that time.
  std::optional<std::vector<TaskPlacement>> places_after(std::size_t count) {
    const Trial::Mark mark = trial_.mark();
    look_ahead(trial_, time_of(count), now_);
    Reason why;
    auto found = fit_now(state_, job_, work_, why);
    trial_.rollback_to(mark);
    return found;
  }

  Trial& trial_;
  State& state_;
  const JobState& job_;
  PlaceWork& work_;
  const std::vector<Relief>& reliefs_;  // in their order
  Timestamp now_;
  std::set<Timestamp> turns_;
};

}  // namespace

Ending ending(const State& state, const JobState& job, std::span<const TaskPlacement> placements, Timestamp now) {
  Ending one{job.id};
  const std::int64_t expected_s = state::expected_run_s(state, job);
  if (expected_s > 0) one.expected = now + expected_s * 1000;
  if (state::ends_for_certain(state, job)) one.certain = one.expected;
  if (state.maintenance().empty()) return one;
  for (const TaskPlacement& placement : placements) leaves_by(one, moved_by(state, job, placement.node, now));
  return one;
}

const std::vector<Relief>& Reliefs::in_order(bool by_estimates) {
  std::optional<std::vector<Relief>>& known = reliefs_[by_estimates ? 1 : 0];
  if (known) return *known;
  std::vector<Relief>& reliefs = known.emplace();
  const auto add = [&](const Ending& one) {
    const Timestamp when = by_estimates ? one.expected : one.certain;
    if (!when.is_never()) reliefs.push_back({when, one.job});
  };
  for (const Ending& one : starting_) add(one);
  for (const JobId id : state_.running()) add(ending(state_, *state_.job(id), now_));
  for (const auto& [name, window] : state_.maintenance()) reliefs.push_back({window.to, JobId::none()});
  std::sort(reliefs.begin(), reliefs.end());
  return reliefs;
}

std::optional<HoldDecision> earliest_start(Trial& trial, State& state, JobId job, Timestamp now, Reliefs& reliefs,
                                           PlaceWork& work) {
  const bool by_estimates = trusts_estimates(state, *state.job(job), now);
  return PrefixSearch(trial, state, job, work, reliefs.in_order(by_estimates), now).run();
}

bool trusts_estimates(const State& state, const JobState& job, Timestamp now) {
  return trusts_estimates(state, std::max(job.waiting_since, job.not_before), now);
}

bool trusts_estimates(const State& state, Timestamp waits_since, Timestamp now) {
  return now - waits_since >= checked_multiply(state.config().scheduling.hold_after_s, 1000);
}

void look_ahead(Trial& trial, Timestamp when, Timestamp now) {
  trial.look_at(std::max(now, when));
  trial.end_windows(std::max(now, when));
}

}  // namespace berth::sched
