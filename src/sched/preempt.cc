#include "sched/preempt.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/planted.h"
#include "sched/admit.h"
#include "sched/quota.h"

namespace berth::sched {

namespace {

using state::JobState;
using state::State;
using state::Trial;

struct Victim {
  JobId job;
  StopCause cause = StopCause::kReclaim;
  std::int32_t priority = 0;
  Fraction loss_per_gpu;
  Seq order = 0;
};

std::int64_t gpu_milli_of(const JobState& job) {
  std::int64_t milli = 0;
  for (const state::Charge& charge : job.attempt->charges) milli += charge.amounts[kDimGpu];
  return milli;
}

bool borrowed_at(const State& state, const JobState& job, QueueId queue) {
  const std::uint32_t depth = state.queue(queue).depth;
  return std::any_of(job.attempt->charges.begin(), job.attempt->charges.end(),
                     [&](const state::Charge& charge) { return (charge.within >> depth & 1U) == 0; });
}

// What a claimant may ask of others, worked out once for all victims.
struct Claim {
  const JobState& job;
  Amounts asked;
  std::vector<bool> within;  // by depth of its queues: it would lie inside the guarantee there
  bool may_reclaim = false;
  bool may_preempt = false;
};

Claim claim_of(const State& state, const JobState& claimant) {
  const SchedulingConfig& rules = state.config().scheduling;
  Claim claim{claimant, least_amounts(state, claimant.spec), {}, false, false};
  claim.may_preempt = rules.preempt && state.queue(claimant.queue).running_below > 0;
  for (const QueueId queue : state.path_to(claimant.queue)) {
    claim.within.push_back(rules.reclaim && would_be_within(state, queue, claim.asked));
    claim.may_reclaim = claim.may_reclaim || claim.within.back();
  }
  return claim;
}

// Why `victim` may be stopped for the claimant, or nothing.
std::optional<StopCause> justification(const State& state, const Claim& claim, const JobState& victim) {
  if (victim.queue == claim.job.queue) {
    const bool lower = claim.may_preempt && victim.priority < claim.job.priority;
    return lower ? std::optional(StopCause::kPreempt) : std::nullopt;
  }
  if (!claim.may_reclaim) return std::nullopt;
  const Siblings siblings = below_common_ancestor(state, claim.job.queue, victim.queue);
  if (!claim.within[state.queue(siblings.claimant).depth]) return std::nullopt;
  if (!planted(Bug::kReclaimWithin) && !borrowed_at(state, victim, siblings.victim)) return std::nullopt;
  return StopCause::kReclaim;
}

Timestamp old_enough_at(const State& state, const JobState& victim) {
  return victim.attempt->started + checked_multiply(state.config().scheduling.min_runtime_s, 1000);
}

std::vector<Victim> candidates(const VictimSearch& search, const JobState& claimant, PlaceWork& work) {
  const Claim claim = claim_of(search.state, claimant);
  std::vector<Victim> found;
  if (!claim.may_reclaim && !claim.may_preempt) return found;
  for (const JobId id : search.state.running()) {
    const JobState& job = *search.state.job(id);
    if (job.phase != JobPhase::kRunning || search.spoken_for.contains(id)) continue;
    const auto cause = justification(search.state, claim, job);
    if (!cause) continue;
    const std::int64_t milli = gpu_milli_of(job);
    if (claim.asked[kDimGpu] > 0 && milli == 0) continue;  // frees none of what is short
    if (const Timestamp ripe = old_enough_at(search.state, job); ripe > search.now) {
      work.ask_again_at = std::min(work.ask_again_at, ripe);
      continue;
    }
    const Fraction loss{loss_of_stopping(job, search.now), std::max<std::int64_t>(1, milli)};
    found.push_back({id, *cause, job.priority, loss, job.attempt->charges.front().order});
  }
  std::sort(found.begin(), found.end(), [](const Victim& a, const Victim& b) {
    if (a.priority != b.priority) return a.priority < b.priority;
    if (const int by_loss = compare(a.loss_per_gpu, b.loss_per_gpu); by_loss != 0) return by_loss < 0;
    return a.order > b.order;
  });
  return found;
}

// Where the claimant fits when the victims are gone, if it does; every reclaimed victim must be justified by the
// guarantee on the very models the claimant would take.
std::optional<std::vector<TaskPlacement>> fits_without(const VictimSearch& search, JobId claimant,
                                                       const std::vector<Victim>& victims, std::size_t count,
                                                       PlaceWork& work) {
  Trial trial(search.state);
  for (std::size_t i = 0; i < count; ++i) trial.remove(victims[i].job);
  const JobState& job = *search.state.job(claimant);
  const Admission admission = admit(search.state, job);
  if (admission.models == 0) return std::nullopt;
  Reason why;
  auto placements = place(search.state, job, admission.models, work, why);
  if (!placements) return std::nullopt;
  const bool justified = trim_until(job.spec, *placements, [&](const std::vector<TaskPlacement>& rest) {
    if (refuses(search.state, job, rest)) return false;
    const Amounts exact = search.state.amounts_of(job.spec, rest);
    return std::all_of(
        victims.begin(), victims.begin() + static_cast<std::ptrdiff_t>(count), [&](const Victim& victim) {
          if (victim.cause != StopCause::kReclaim) return true;
          const QueueId theirs = search.state.job(victim.job)->queue;
          return would_be_within(search.state, below_common_ancestor(search.state, job.queue, theirs).claimant, exact);
        });
  });
  return justified ? std::move(placements) : std::nullopt;
}

}  // namespace

std::int64_t loss_of_stopping(const JobState& job, Timestamp now) {
  if (job.spec.checkpoint.on_signal) return 0;
  const Timestamp saved = job.attempt->checkpoint_at.value_or(job.attempt->started);
  return checked_multiply(std::max<std::int64_t>(0, now - saved), gpu_milli_of(job) / kMilli + 1);
}

std::optional<EvictDecision> find_victims(const VictimSearch& search, JobId claimant, PlaceWork& work) {
  std::vector<Victim> victims = candidates(search, *search.state.job(claimant), work);
  if (victims.size() > search.budget) victims.resize(search.budget);
  if (victims.empty() || !fits_without(search, claimant, victims, victims.size(), work)) return std::nullopt;
  // More victims never make it harder to fit, so the shortest sufficient prefix is found by halving.
  std::size_t low = 0;
  std::size_t high = victims.size();
  while (low + 1 < high) {
    const std::size_t middle = (low + high) / 2;
    if (fits_without(search, claimant, victims, middle, work))
      high = middle;
    else
      low = middle;
  }
  victims.resize(high);
  // Let off, from the most worth keeping on, everyone the claimant fits beside.
  for (std::size_t i = victims.size(); i-- > 0;) {
    std::vector<Victim> fewer = victims;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    if (!fewer.empty() && fits_without(search, claimant, fewer, fewer.size(), work)) victims = std::move(fewer);
  }
  EvictDecision decision;
  decision.claimant = claimant;
  decision.placements = *fits_without(search, claimant, victims, victims.size(), work);
  for (const Victim& victim : victims) {
    decision.victims.push_back(victim.job);
    if (victim.cause == StopCause::kPreempt) decision.cause = StopCause::kPreempt;
  }
  return decision;
}

}  // namespace berth::sched
