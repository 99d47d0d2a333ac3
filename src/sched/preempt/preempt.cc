#include "sched/preempt/preempt.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "sched/place/affinity.h"
#include "sched/preempt/victim_bounds.h"
#include "sched/preempt/victim_candidates.h"
#include "sched/queue/quota.h"
#include "sched/queue/share.h"
#include "sched/start.h"
#include "state/back_off.h"

namespace berth::sched {

namespace {

using state::JobState;
using state::State;
using state::Transaction;

constexpr std::int64_t kSavedByMs = 60'000;  // victims that would lose too much are looked at again after so long

// Whether the preemptor may reclaim, and in which pools it takes places. No job is reclaimed for places in burst pools:
// everything there is borrowed, so the preemptor would have no better right to them than its victim.
struct VictimReach {
  bool reclaim = true;
  Pools pools = Pools::kAny;
};

Timestamp gone_by(const State& state, const Victim& victim) {
  return state.asked_at() + state.grace_ms(*state.job(victim.job));
}

// Returns the latest time at which the last victim leaves.
Timestamp gone_by(const State& state, std::span<const Victim> victims) {
  Timestamp last = state.asked_at();
  for (const Victim& victim : victims) last = std::max(last, gone_by(state, victim));
  return last;
}

// Tests whether the preemptor fits without a given list of victims, beside the reservations that it may not pass. Lists
// with a common beginning cost only the difference: the transaction is rolled back to what they share.
class Without {
 public:
  Without(const VictimSearch& search, JobId preemptor, Pools pools, SearchStats& work)
      : state_(search.state),
        now_(search.now),
        preemptor_(preemptor),
        pools_(pools),
        work_(work),
        transaction_(search.state) {
    const JobState& job = *state_.job(preemptor);
    for (QueueId q = job.queue; q != state_.root(); q = state_.queue(q).parent) {
      used_before_.emplace(q, state_.queue(q).usage + state_.queue(q).nominated);
      differs_by_model_ = differs_by_model_ || guarantees_models(state_.queue(q));
    }
    set_reserved_aside(state_, transaction_, not_passed(state_, job, search.now));
  }

  // Puts all victims back.
  void bring_back() { remove({}, 0); }

  // Returns the preemptor's places without the first `count` victims; nothing if it does not fit. Each reclaimed victim
  // must be justified by a guarantee on the very GPU models that the preemptor would take. The preemptor starts at some
  // time until the last victim has left. So places that maintenance closes by then do not count: the victims would
  // leave for nothing, and it would preempt again.
  std::optional<std::vector<TaskPlacement>> fit(const std::vector<Victim>& victims, std::size_t count) {
    remove(victims, count);
    if (!state_.maintenance().empty()) transaction_.look_until(gone_by(state_, std::span(victims).first(count)));
    const JobState& job = *state_.job(preemptor_);
    // Where guarantees are of models, the reclaim may be justified on others than those that fit best.
    return find_places_of_preemptor({state_, job, now_, work_}, pools_, differs_by_model_,
                                    [&](const std::vector<TaskPlacement>& rest) {
                                      return guarantees(state_.amounts_of(job.spec, rest), victims, count);
                                    });
  }

  // Returns true if the preemptor, at `placements`, ranks no lower than any job that it evicts as a whole. Guarantees
  // that it is within by displacement count.
  bool outranks(const std::vector<Victim>& victims, const std::vector<TaskPlacement>& placements) const {
    const JobState& job = *state_.job(preemptor_);
    std::uint64_t within = 1;
    if (!state_.burst_amounts_of(job.spec, placements)) {
      for (const QueueId q : claims_within(state_, job.queue, state_.amounts_of(job.spec, placements)))
        within |= std::uint64_t{1} << state_.queue(q).depth;
    }
    return std::all_of(victims.begin(), victims.end(),
                       [&](const Victim& one) { return !one.whole() || !state::is_higher(one.within, within); });
  }

 private:
  // Returns true if the preemptor, which counts `exact`, is inside a guarantee against each job that it would reclaim
  // from.
  bool guarantees(const Amounts& exact, const std::vector<Victim>& victims, std::size_t count) const {
    const QueueId ours = state_.job(preemptor_)->queue;
    const std::vector<QueueId> within = claims_within(state_, ours, exact);
    return std::all_of(victims.begin(), victims.begin() + static_cast<std::ptrdiff_t>(count), [&](const Victim& one) {
      if (one.cause != StopCause::kReclaim) return true;
      const QueueId theirs = state_.job(one.job)->queue;
      const QueueId side = below_common_ancestor(state_, ours, theirs).preemptor;
      return std::find(within.begin(), within.end(), side) != within.end() ||
             (!one.whole() && has_no_more(side, exact, one.side_share));
    });
  }

  // Counts the side as it is before any victim leaves.
  bool has_no_more(QueueId side, const Amounts& exact, const Fraction& than) const {
    const state::SharedAmounts amounts = state::shared_part(used_before_.at(side) + exact);
    const Fraction share = dominant_share(state_, amounts, state_.queue(side).weight);
    return !share.infinite() && !(than < share);
  }

  void remove(const std::vector<Victim>& victims, std::size_t count) {
    std::size_t same = 0;
    while (same < count && same < removed_.size() && removed_[same].job == victims[same].job &&
           removed_[same].keep == victims[same].keep) {
      ++same;
    }
    if (same < removed_.size()) {
      transaction_.rollback_to(removed_[same].before);
      removed_.resize(same);
    }
    for (std::size_t i = same; i < count; ++i) {
      removed_.push_back({victims[i].job, victims[i].keep, transaction_.mark()});
      if (victims[i].whole())
        transaction_.remove(victims[i].job);
      else
        transaction_.shrink(victims[i].job, victims[i].keep);
    }
  }

  struct Removed {
    JobId job;
    std::uint32_t keep = 0;
    Transaction::Mark before = 0;
  };

  State& state_;
  Timestamp now_;
  JobId preemptor_;
  Pools pools_;
  SearchStats& work_;
  Transaction transaction_;
  bool differs_by_model_ = false;           // the GPU model decides whether the job is within guarantees
  std::map<QueueId, Amounts> used_before_;  // and nominated, on the preemptor's quota path
  std::vector<Removed> removed_;            // in order
};

// Returns the victims that hold something on a node where the preemptor would run.
std::vector<Victim> in_the_way(const State& state, const std::vector<Victim>& victims,
                               const std::vector<TaskPlacement>& placements) {
  std::set<NodeId> nodes;
  for (const TaskPlacement& placement : placements) nodes.insert(placement.node);
  std::vector<Victim> needed;
  for (const Victim& victim : victims) {
    const auto& tasks = state.job(victim.job)->attempt->tasks;
    const bool touches = std::any_of(tasks.begin() + victim.keep, tasks.end(),
                                     [&](const state::TaskState& task) { return nodes.contains(task.placement.node); });
    if (touches) needed.push_back(victim);
  }
  return needed;
}

// Returns how many of the first victims free as many GPUs as are lacking; more than there are if all of them do not.
std::size_t least_prefix(const std::vector<Victim>& victims, std::int64_t lacking) {
  std::size_t count = 0;
  for (; lacking > 0 && count < victims.size(); ++count) lacking -= victims[count].gpu_milli;
  return lacking > 0 ? victims.size() + 1 : std::max<std::size_t>(1, count);
}

// A length of the list that suffices (`high`), and one that does not (`low`).
struct Prefixes {
  std::size_t low = 0;
  std::size_t high = 0;
};

// More victims never make it harder to fit, except beside maintenance windows, because they may take longer to leave.
// So the length is doubled, from `least`, until it suffices.
std::optional<Prefixes> sufficient_prefix(Without& without, const std::vector<Victim>& victims, std::size_t least) {
  if (least > victims.size()) return std::nullopt;
  Prefixes found{least - 1, least};
  while (!without.fit(victims, found.high)) {
    if (found.high == victims.size()) return std::nullopt;
    found.low = found.high;
    found.high = std::min(2 * found.high, victims.size());
  }
  return found;
}

// Returns the victims that leave soon enough for the planned windows: as many as possible, or none.
std::vector<Victim> leaving_soon_enough(const State& state, Without& without, const std::vector<Victim>& victims) {
  std::vector<Victim> sooner = victims;
  while (!sooner.empty()) {
    const Timestamp last = gone_by(state, sooner);
    std::erase_if(sooner, [&](const Victim& one) { return gone_by(state, one) == last; });
    if (!sooner.empty() && without.fit(sooner, sooner.size())) break;
  }
  return sooner;
}

// Returns the victims that the preemptor need not be near.
std::vector<Victim> without_company(const State& state, const JobState& preemptor, std::vector<Victim> victims) {
  std::erase_if(victims, [&](const Victim& one) { return is_company(preemptor, *state.job(one.job)); });
  return victims;
}

// Returns the shortest sufficient length between the two.
std::size_t shortest_prefix(Without& without, const std::vector<Victim>& victims, Prefixes between) {
  while (between.low + 1 < between.high) {
    const std::size_t middle = (between.low + between.high) / 2;
    (without.fit(victims, middle) ? between.high : between.low) = middle;
  }
  return between.high;
}

std::int64_t gpu_milli_freed_by(const std::vector<Victim>& victims) {
  std::int64_t milli = 0;
  for (const Victim& victim : victims) milli += victim.gpu_milli;
  return milli;
}

void leave(const State& state, VictimBounds& victim_bounds, std::span<const Victim> victims) {
  for (const Victim& victim : victims) victim_bounds.leave(*state.job(victim.job), victim.keep, victim.end);
}

void stay(const State& state, VictimBounds& victim_bounds, std::span<const Victim> victims) {
  for (const Victim& victim : victims) victim_bounds.stay(*state.job(victim.job), victim.keep, victim.end);
}

// Lets victims leave, the first one first, until the preemptor might fit. Returns how many that are, which is a lower
// bound; nothing if all of them would not do.
std::optional<std::size_t> least_to_leave(const State& state, VictimBounds& victim_bounds,
                                          const std::vector<Victim>& victims) {
  for (std::size_t count = 0; count < victims.size();) {
    leave(state, victim_bounds, std::span(victims).subspan(count++, 1));
    if (victim_bounds.might_fit()) return count;
  }
  return std::nullopt;
}

// Sets `end` of each whole job in the list, so that no task is in two entries. An evicted job loses all its tasks,
// scaled-up tasks included. If these have an entry of their own, the entry of the job ends where that one begins.
std::vector<Victim> in_pieces(const State& state, std::vector<Victim> victims) {
  std::map<JobId, std::uint32_t> growth_from;
  for (const Victim& victim : victims) {
    if (!victim.whole()) growth_from.emplace(victim.job, victim.keep);
  }
  for (Victim& victim : victims) {
    const auto growth = growth_from.find(victim.job);
    if (victim.whole()) victim.end = growth == growth_from.end() ? tasks_of(*state.job(victim.job)) : growth->second;
  }
  return victims;
}

// Cancels evictions that are not needed, from the end of the list, where the victims most worth keeping are. Requires
// that no victim has left in the count.
void cancel_eviction(const State& state, Without& without, VictimBounds& victim_bounds, std::vector<Victim>& victims) {
  victims = in_pieces(state, std::move(victims));
  leave(state, victim_bounds, victims);
  std::set<JobId> leaving;
  for (const Victim& victim : victims) {
    if (victim.whole()) leaving.insert(victim.job);
  }
  for (std::size_t i = victims.size(); i-- > 0 && victims.size() > 1;) {
    const Victim victim = victims[i];
    const bool goes_anyway = !victim.whole() && leaving.contains(victim.job);
    if (!goes_anyway) stay(state, victim_bounds, std::span(&victim, 1));
    if (goes_anyway || victim_bounds.might_fit()) {
      std::vector<Victim> fewer = victims;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      if (without.fit(fewer, fewer.size())) {
        victims = std::move(fewer);
        if (victim.whole()) leaving.erase(victim.job);
        continue;
      }
    }
    if (!goes_anyway) leave(state, victim_bounds, std::span(&victim, 1));
  }
}

// A job that is evicted has no tasks left to scale down. A gang that scales down keeps as many tasks as possible.
std::vector<Victim> give_back_least(Without& without, std::vector<Victim> victims) {
  std::set<JobId> leaving;
  for (const Victim& victim : victims) {
    if (victim.whole()) leaving.insert(victim.job);
  }
  std::erase_if(victims, [&](const Victim& victim) { return !victim.whole() && leaving.contains(victim.job); });
  for (std::size_t i = 0; i < victims.size(); ++i) {
    if (victims[i].whole()) continue;
    std::uint32_t low = victims[i].keep;
    for (std::uint32_t high = victims[i].end; low + 1 < high;) {
      const std::uint32_t middle = low + (high - low) / 2;
      victims[i].keep = middle;
      (without.fit(victims, victims.size()) ? low : high) = middle;
    }
    victims[i].keep = low;
  }
  return victims;
}

// Returns true if the preempted jobs would lose more work than the preemptor's GPUs may cost. Reclaimed jobs do not
// count: a queue gets what it is guaranteed, whatever others lose.
bool too_dear(const State& state, const std::vector<Victim>& victims, const std::vector<TaskPlacement>& gained,
              Timestamp now) {
  const std::int64_t most_s = state.config().scheduling.preempt_max_loss_s;
  if (most_s == 0) return false;
  const std::int64_t gpu_milli = gpu_milli_of(gained);
  Int128 lost_gpu_ms = 0;
  for (const Victim& victim : victims) {
    if (victim.whole() && victim.cause == StopCause::kPreempt)
      lost_gpu_ms += loss_of_stopping(state.running_table().rows()[state.job(victim.job)->running_row], now);
  }
  return lost_gpu_ms * kMilli > Int128{most_s} * 1000 * std::max(gpu_milli, kMilli);
}

}  // namespace

std::int64_t loss_of_stopping(const state::RunningRow& row, Timestamp now) {
  if (row.on_signal) return 0;
  const std::int64_t ms = std::max<std::int64_t>(0, now - row.saved);
  return row.gpu_milli == 0 ? ms : static_cast<std::int64_t>(Int128{ms} * row.gpu_milli / kMilli);
}

std::size_t eviction_budget(const State& state, Timestamp now, std::size_t already) {
  const SchedulingConfig& rules = state.config().scheduling;
  std::int64_t most = rules.victims_per_cycle;
  if (rules.evictions_per_hour > 0) most = std::min(most, state.evictions().left(rules.evictions_per_hour, now));
  const auto limit = static_cast<std::size_t>(most);
  return limit - std::min(limit, already);
}

namespace {

constexpr std::int64_t kAtOnceMs = 10'000;  // a moved job starts in the next cycle or loses its places

// Returns the first record that ended with a move and no wait: the next attempt went on elsewhere.
std::vector<state::AttemptRecord>::const_iterator first_move(const JobState& job) {
  auto first = job.past.end();
  Timestamp next = job.attempt ? job.attempt->started : Timestamp::never();
  while (first != job.past.begin()) {
    const state::AttemptRecord& before = *std::prev(first);
    if (!before.cause || !is_move(*before.cause) || next - before.ended > kAtOnceMs) break;
    next = before.started;
    --first;
  }
  return first;
}

}  // namespace

Timestamp runs_since(const JobState& job) {
  const auto move = first_move(job);
  return move == job.past.end() ? job.attempt->started : move->started;
}

bool has_moved_since(const JobState& job, Timestamp time) {
  return first_move(job) != job.past.end() && job.attempt->started > time;
}

LeastRun least_run(const State& state, const JobState& job) {
  const state::EvictionTerms& terms = state.queue(job.queue).eviction;
  const auto move = first_move(job);
  const auto cause = move == job.past.begin() ? std::nullopt : std::prev(move)->cause;
  const bool evicted_last = cause == StopCause::kReclaim || cause == StopCause::kPreempt;
  if (evicted_last && terms.cooldown_s > terms.min_runtime_s) return {terms.cooldown_s, terms.cooldown_of, true};
  return {terms.min_runtime_s, terms.min_runtime_of};
}

Timestamp may_be_stopped_from(const State& state, const JobState& job) {
  return runs_since(job) + checked_multiply(least_run_s(state, job), 1000);
}

bool may_evict_others(const State& state, const JobState& job, const Amounts& asked) {
  const SchedulingConfig& rules = state.config().scheduling;
  const state::QueueState& leaf = state.queue(job.queue);
  const auto any_growth = [&](const auto& gives_way) {
    return std::any_of(state.elastic().begin(), state.elastic().end(),
                       [&](JobId id) { return has_growth(*state.job(id)) && gives_way(*state.job(id)); });
  };
  if (const auto limit = over_user_limit(state, job, asked)) {
    return limit->dim != kDims && any_growth([&](const JobState& other) { return other.spec.user == job.spec.user; });
  }
  if (rules.preempt && !leaf.running.empty() && leaf.running.begin()->first < job.priority) return true;
  const bool last = static_cast<std::size_t>(job.level) > leaf.service_thresholds.size();
  if (rules.preempt && !leaf.service_thresholds.empty() && !last && leaf.running.contains(job.priority)) return true;
  const auto in_our_queue = [&](const JobState& other) {
    return other.queue == job.queue && other.priority <= job.priority;
  };
  if (rules.preempt && any_growth(in_our_queue)) return true;
  if (!rules.reclaim) return false;
  if (any_growth([&](const JobState& other) { return other.queue != job.queue; })) return true;
  for (QueueId q = job.queue; q != state.root(); q = state.queue(q).parent) {
    if (would_be_within(state, q, asked)) return true;
  }
  return false;
}

namespace {

bool keeps_to_limits(const VictimSearch& search, std::span<const Victim> victims) {
  EvictionLimits limits(search.state, search.now, search.stopped);
  return std::all_of(victims.begin(), victims.end(),
                     [&](const Victim& one) { return !one.whole() || limits.take(search.state.job(one.job)->queue); });
}

// Chooses as few of the candidates as possible, and as few tasks of each. Requires that all of them suffice and that
// the first `least` have left in the count.
VictimsFound stop_fewest(const VictimSearch& search, const JobState& preemptor, Without& without,
                         VictimBounds& victim_bounds, std::span<const Victim> candidates, std::size_t least) {
  const State& state = search.state;
  without.bring_back();  // nodes are counted as they are before any victim leaves
  leave(state, victim_bounds, candidates.subspan(least));
  stay(state, victim_bounds, candidates);
  std::vector<Victim> victims(candidates.begin(), candidates.end());
  // Most victims of the list may hold nothing on the nodes that the preemptor takes.
  const auto placements = without.fit(victims, victims.size());
  std::vector<Victim> needed = in_the_way(state, victims, *placements);
  if (!needed.empty() && without.fit(needed, needed.size())) victims = std::move(needed);
  cancel_eviction(state, without, victim_bounds, victims);
  victims = give_back_least(without, std::move(victims));
  VictimsFound found;
  if (search.queue_limits == QueueLimits::kCheck && !keeps_to_limits(search, victims)) return found;
  EvictDecision decision;
  decision.preemptor = preemptor.id;
  decision.placements = *without.fit(victims, victims.size());
  found.too_dear = too_dear(state, victims, decision.placements, search.now);
  if (found.too_dear) {  // until they have saved
    found.reevaluate_at = search.now + kSavedByMs;
    return found;
  }
  const auto outranks = [&](const std::vector<TaskPlacement>& rest) { return without.outranks(victims, rest); };
  if (preemptor.has_given_way() && !trim_until(preemptor.spec, decision.placements, outranks)) {
    found.left_out = true;  // in another order of victims, which changes with time, others might be found
    return found;
  }
  for (const Victim& victim : victims) {
    decision.victims.push_back(victim.job);
    decision.causes.push_back(victim.cause);
    decision.keeps.push_back(victim.keep);
    if (victim.cause == StopCause::kPreempt) decision.cause = StopCause::kPreempt;
  }
  found.decision = std::move(decision);
  return found;
}

// What two searches for one preemptor found, the second after the first found no victims.
VictimsFound joined(const VictimsFound& first, VictimsFound second) {
  second.left_out = second.left_out || first.left_out;
  second.over_queue_limits = second.over_queue_limits || first.over_queue_limits;
  second.passed_over = second.passed_over || first.passed_over;
  second.reevaluate_at = std::min(second.reevaluate_at, first.reevaluate_at);
  return second;
}

// Returns true if the job cannot fit, whichever nodes its victims leave, while the GPUs that it may use are too few in
// sum. The count looks at all pools, and at slices of cut GPUs.
bool is_told_by_gpus(const State& state, const JobState& job, const VictimReach& reach) {
  return !VictimBounds::counts(state, job) ||
         (reach.pools == Pools::kAny && job.spec.groups.front().request.mig_profile.empty());
}

VictimsFound find_within(const VictimReach& reach, const VictimSearch& search, JobId preemptor, SearchStats& work) {
  const JobState& job = *search.state.job(preemptor);
  const State& state = search.state;
  VictimsFound found;
  const auto look_again = [&](Timestamp when) { found.reevaluate_at = std::min(found.reevaluate_at, when); };
  if (const Timestamp from = state::may_evict_from(job); from > search.now) {
    look_again(from);
    return found;
  }
  std::optional<VictimCandidates> own;
  const VictimCandidates& candidates = gather_candidates(search, job, reach.reclaim, own, work);
  const std::vector<Victim>& evictable = candidates.evictable;
  const std::vector<Victim>& not_yet_evictable = candidates.not_yet_evictable;
  const bool none = evictable.empty() && not_yet_evictable.empty();
  found.left_out = candidates.left_out;
  found.passed_over = candidates.passed_over;
  found.over_queue_limits = candidates.over_queue_limits;
  if (candidates.left_out) look_again(candidates.more_from);
  if (candidates.left_out && search.only_whether != nullptr) return found;
  if (none && candidates.spares_growth) return found;
  const std::int64_t freed = gpu_milli_freed_by(evictable) + gpu_milli_freed_by(not_yet_evictable);
  const auto lacking_now = [&] { return gpu_milli_short(state, job, kAllModels, reach.pools); };
  if (!candidates.left_out && is_told_by_gpus(state, job, reach) && freed < lacking_now()) {
    // It lacks them beside reservations, too, and the count would say the same.
    found.hopeless = VictimBounds::counts(state, job) && !candidates.spares_growth;
    return found;
  }
  Without without(search, preemptor, reach.pools, work);  // what is reserved for others is taken, also in the counts
  const std::int64_t lacking = lacking_now();
  VictimBounds victim_bounds(state, job, work);
  const bool lacks_gpus = !candidates.left_out && freed < lacking;
  // Victims may hold GPUs that are of no use to the preemptor; so this alone does not say that it stays so.
  if (lacks_gpus && !victim_bounds.counts()) return found;
  auto least = least_to_leave(state, victim_bounds, evictable);
  if (!least) leave(state, victim_bounds, not_yet_evictable);
  const bool futile = !candidates.left_out && !least && !victim_bounds.might_fit();
  found.hopeless = futile && !candidates.spares_growth;
  if (futile || none) return found;
  std::optional<Prefixes> enough;
  if (least) enough = sufficient_prefix(without, evictable, std::max(*least, least_prefix(evictable, lacking)));
  std::vector<Victim> some;  // fewer may do if all do not
  const std::vector<Victim>* victims = &evictable;
  const auto try_fewer = [&](std::vector<Victim> fewer) {
    if (!least || fewer.size() == victims->size()) return;
    without.bring_back();  // nodes are counted as they are before any victim leaves
    stay(state, victim_bounds, std::span(*victims).first(*least));
    if (const auto of_fewer = least_to_leave(state, victim_bounds, fewer)) {
      some = std::move(fewer);
      victims = &some;
      least = of_fewer;
      enough = sufficient_prefix(without, some, std::max(*least, least_prefix(some, lacking)));
    } else {
      stay(state, victim_bounds, fewer);
      leave(state, victim_bounds, std::span(*victims).first(*least));
    }
  };
  if (!enough && !job.spec.affinity.empty()) try_fewer(without_company(state, job, *victims));
  if (!enough && !state.maintenance().empty()) try_fewer(leaving_soon_enough(state, without, *victims));
  if (!enough) {
    look_again(candidates.next_evictable);
    return found;
  }
  if (search.only_whether != nullptr) {
    found.decision.emplace();
    return found;
  }
  const std::size_t shortest = shortest_prefix(without, *victims, *enough);
  found = joined(found, stop_fewest(search, job, without, victim_bounds, std::span(*victims).first(shortest), *least));
  if (!found.decision) look_again(candidates.next_evictable);  // more candidates then
  return found;
}

VictimsFound find_in_reach(const VictimSearch& search, JobId preemptor, SearchStats& work) {
  if (!search.state.has_burst_pools()) return find_within({}, search, preemptor, work);
  VictimsFound ordinary = find_within({true, Pools::kOrdinary}, search, preemptor, work);
  if (ordinary.decision) return ordinary;
  VictimsFound found = joined(ordinary, find_within({false, Pools::kAny}, search, preemptor, work));
  found.hopeless = found.hopeless && ordinary.hopeless;
  return found;
}

VictimsFound find_enough(const VictimSearch& search, JobId preemptor, SearchStats& work) {
  VictimsFound found = find_in_reach(search, preemptor, work);
  if (found.decision || !found.left_out || search.only_whether != nullptr) return found;
  // The cheapest victims are not enough: fewer and larger ones may be.
  VictimSearch largest = search;
  largest.largest = true;
  found = joined(found, find_in_reach(largest, preemptor, work));
  if (found.decision || !found.over_queue_limits || search.queue_limits != QueueLimits::kChoose) return found;
  // Nor are the largest: it may need other jobs of the same queue.
  VictimSearch any = search;
  any.queue_limits = QueueLimits::kCheck;
  return joined(found, find_in_reach(any, preemptor, work));
}

}  // namespace

VictimsFound find_victims(const VictimSearch& search, JobId preemptor, SearchStats& work) {
  VictimsFound found = find_enough(search, preemptor, work);
  if (found.decision || !found.passed_over || found.too_dear) return found;
  if (search.only_whether != nullptr && found.left_out) return found;
  // It may lack CPU and memory beside GPUs.
  VictimSearch all = search;
  all.without_gpus = true;
  return joined(found, find_enough(all, preemptor, work));
}

}  // namespace berth::sched
