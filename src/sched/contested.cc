#include "sched/contested.h"

#include <algorithm>
#include <set>
#include <utility>

#include "sched/admit.h"
#include "sched/fit.h"
#include "sched/grow.h"
#include "sched/neighbours.h"
#include "sched/node_fit.h"
#include "sched/place.h"
#include "sched/preempt.h"
#include "sched/quota.h"
#include "state/attained_service.h"
#include "state/grace.h"

namespace berth::sched {

namespace {

using state::JobState;
using state::QueueState;
using state::State;
using state::Trial;

bool may_use_one_of(const State& state, const JobState& job, const std::vector<TaskPlacement>& placements) {
  for (std::size_t g = 0; g < job.spec.groups.size(); ++g) {
    const TaskAsk ask = task_ask(state, job, g, kAllModels);
    for (const TaskPlacement& placement : placements) {
      if (could_hold(state, ask, state.node(placement.node))) return true;
    }
  }
  return false;
}

// The first that may be asked now; equals of it may do nothing that it may not.
const JobState* first_of(const State& state, const std::set<state::PendingKey>& jobs, Timestamp now) {
  for (const state::PendingKey& key : jobs) {
    const JobState& waiting = *state.job(key.job);
    if (waiting.not_before <= now && !waiting.nomination) return &waiting;
  }
  return nullptr;
}

// Those of one queue who are asked: of each lane the first, in a strict queue the first of all.
std::vector<const JobState*> asked_in(const State& state, const QueueState& leaf, Timestamp now) {
  std::vector<const JobState*> asked;
  if (leaf.policy == QueuePolicy::kStrict) {
    if (const JobState* head = first_of(state, leaf.pending, now)) asked.push_back(head);
    return asked;
  }
  for (const auto& [shape, lane] : leaf.lanes) {
    if (const JobState* head = first_of(state, lane, now)) asked.push_back(head);
  }
  return asked;
}

// A claimant, and where it would start.
struct Start {
  const JobState& job;
  std::vector<TaskPlacement> placements;
  std::optional<Amounts> counts;  // nothing where a part of it is in burst pools: then it borrows everywhere
  bool all_burst = false;
};

// Without what it grows by at once: that gives way without its end.
Start start_of(const State& state, const JobState& job, const std::vector<TaskPlacement>& found) {
  const std::vector<TaskPlacement> places = job.is_elastic() ? split_growth(job.spec, found).start : found;
  Start start{job, places, state.amounts_of(job.spec, places)};
  if (!state.burst_amounts_of(job.spec, places)) return start;
  start.counts.reset();
  start.all_burst =
      std::all_of(places.begin(), places.end(), [&](const TaskPlacement& place) { return state.is_burst(place.node); });
  return start;
}

// Whether a job of its own queue may: of higher priority or, where the queue orders by attained service and the job can
// save, of a lower level.
bool may_preempt(const QueueState& queue, const JobState& waiting, const JobState& job, Timestamp now) {
  if (waiting.priority != job.priority) return waiting.priority > job.priority;
  return !queue.service_thresholds.empty() && job.spec.checkpoint.on_signal &&
         waiting.level < state::level_of(queue, job, now);
}

// Whether it would be of use to him to stop the job there: it takes a place that he might have, or a part of what quota
// allows, or it stands where he may not be near.
bool would_gain(const State& state, const JobState& waiting, const Start& start) {
  return may_use_one_of(state, waiting, start.placements) || !admits_all_models(state, waiting) ||
         Neighbours(state, waiting).matter();
}

// Those of one queue, and of all below it, whom the rules let stop the job and who would gain by it.
class MightStop {
 public:
  MightStop(const State& state, const Start& start, Timestamp now) : state_(state), start_(start), now_(now) {}

  void add_of_own_queue() {
    const QueueState& own = state_.queue(start_.job.queue);
    for (const JobState* waiting : asked_in(state_, own, now_)) {
      if (waiting->id != start_.job.id && may_preempt(own, *waiting, start_.job, now_)) add(*waiting);
    }
  }

  // Of the branches of the tree that part from the job's own where it borrows, and are guaranteed something.
  void add_of_others() {
    for (QueueId side = start_.job.queue; side != state_.root(); side = state_.queue(side).parent) {
      if (start_.counts && ranks_within(state_, side, start_.job.queue, *start_.counts)) continue;
      for (const QueueId other : state_.queue(state_.queue(side).parent).children) {
        if (other != side && state_.queue(other).guaranteed.stated != 0) add_below(other, other);
      }
    }
  }

  std::vector<const JobState*> found() { return std::move(found_); }

 private:
  void add_below(QueueId branch, QueueId id) {
    const QueueState& queue = state_.queue(id);
    if (queue.pending_below == 0) return;
    for (const QueueId child : queue.children) add_below(branch, child);
    for (const JobState* waiting : asked_in(state_, queue, now_)) {
      if (ranks_within(state_, branch, id, least_amounts(state_, waiting->spec))) add(*waiting);
    }
  }

  void add(const JobState& waiting) {
    if (would_gain(state_, waiting, start_)) found_.push_back(&waiting);
  }

  const State& state_;
  const Start& start_;
  Timestamp now_;
  std::vector<const JobState*> found_;
};

std::vector<const JobState*> all_who_might_stop(const State& state, const Start& start, Timestamp now) {
  const SchedulingConfig& rules = state.config().scheduling;
  MightStop might(state, start, now);
  if (rules.preempt) might.add_of_own_queue();
  if (rules.reclaim) might.add_of_others();
  return might.found();
}

// Those who leave have left, on the trial.
void have_left(Trial& trial, const Leaving& leaving) {
  for (std::size_t v = 0; v < leaving.victims.size(); ++v) {
    if (!leaving.keeps.empty() && leaving.keeps[v] > 0)
      trial.shrink(leaving.victims[v], leaving.keeps[v]);
    else
      trial.remove(leaving.victims[v]);
  }
}

// Whether what one of the victims leaves is the contestant's as much as the claimant's: both are below the same child
// of the common ancestor of claimant and victim.
bool gains_likewise(const State& state, const JobState& claimant, const Leaving& leaving, const JobState& contestant) {
  if (contestant.queue == claimant.queue) return true;
  return std::any_of(leaving.victims.begin(), leaving.victims.end(), [&](JobId id) {
    const JobState& victim = *state.job(id);
    if (victim.queue == claimant.queue) return false;
    return state.is_below(contestant.queue, below_common_ancestor(state, claimant.queue, victim.queue).claimant);
  });
}

class Contestants {
 public:
  // Those who are spoken for are on their way, and stopped by nobody else.
  Contestants(Trial& trial, State& state, const std::set<JobId>& spoken_for, Timestamp now, PlaceWork& work)
      : trial_(trial), state_(state), spoken_for_(spoken_for), now_(now), work_(work) {}

  // On a trial on which the job runs.
  bool could_stop(const JobState& waiting, const Start& start) {
    Reason why;
    if (fit_beside_holds(trial_, state_, waiting, now_, work_, why)) {
      const bool may = waiting.queue == start.job.queue || !start.all_burst;  // nobody is reclaimed for places there
      return may && may_use_one_of(state_, waiting, start.placements);
    }
    return !is_never(why.code) && would_claim(waiting, start);
  }

  // The same of who finds no places beside the job, which others could take before him.
  bool stops(const JobState& waiting, const Start& start) {
    Reason why;
    if (fit_beside_holds(trial_, state_, waiting, now_, work_, why)) return false;
    return !is_never(why.code) && would_claim(waiting, start);
  }

  // On a trial on which the claimant's victims have left and it has not started: whether the waiting one, once it has
  // what it would stop the claimant for, leaves it nothing that it could start on or claim.
  bool leaves_nothing(const JobState& waiting, const JobState& claimant) {
    const Trial::Mark mark = trial_.mark();
    std::set<JobId> gone = spoken_for_;
    Reason why;
    auto placements = fit_beside_holds(trial_, state_, waiting, now_, work_, why);
    if (!placements) {
      if (const auto eviction = victims_of(waiting, JobId::none())) {
        gone.insert(eviction->victims.begin(), eviction->victims.end());
        have_left(trial_, {eviction->victims, eviction->keeps});
        placements = eviction->placements;
      }
    }
    bool nothing = false;
    if (placements) {
      trial_.start(waiting.id, split_growth(waiting.spec, *placements).start);
      nothing = !Contestants(trial_, state_, gone, now_, work_).starts_or_claims(claimant);
    }
    trial_.rollback_to(mark);
    return nothing;
  }

  bool starts_or_claims(const JobState& waiting) {
    Reason why;
    if (fit_beside_holds(trial_, state_, waiting, now_, work_, why)) return true;
    return !is_never(why.code) && victims_of(waiting, JobId::none());
  }

 private:
  bool would_claim(const JobState& waiting, const Start& start) {
    const auto eviction = victims_of(waiting, start.job.id);
    return eviction &&
           std::find(eviction->victims.begin(), eviction->victims.end(), start.job.id) != eviction->victims.end();
  }

  std::optional<EvictDecision> victims_of(const JobState& waiting, JobId first) {
    if (!may_claim(state_, waiting, least_amounts(state_, waiting.spec))) return std::nullopt;
    PlaceWork claim;
    VictimSearch search{state_, now_, spoken_for_, eviction_budget(state_, now_, 0)};
    search.first = first;
    auto eviction = find_victims(search, waiting.id, claim);
    work_.nodes_scored += claim.nodes_scored;
    work_.victims_looked_up += claim.victims_looked_up;
    work_.ask_again_at = std::min(work_.ask_again_at, claim.ask_again_at);
    return eviction;
  }

  Trial& trial_;
  State& state_;
  const std::set<JobId>& spoken_for_;
  Timestamp now_;
  PlaceWork& work_;
};

bool is_asked_before(const JobState* a, const JobState* b) {
  return state::precedes_elsewhere(pending_key(*a), pending_key(*b));
}

constexpr std::size_t kMostContestants = 16;  // asked whether they could stop a job, in their order

// What elastic gangs give back for the claimant has been given back, as it will be whether it gives way or not.
void have_given_back(Trial& trial, const State& state, const JobState& claimant) {
  for (const JobId id : claimant.nomination->victims) {
    const JobState* victim = state.job(id);
    const bool gives_back = victim != nullptr && victim->attempt && victim->attempt->shrinking() &&
                            victim->attempt->stop->claimant == claimant.id;
    if (gives_back) trial.shrink(id, victim->attempt->stop->keep);
  }
}

}  // namespace

void let_off_victims(Trial& trial, const State& state, const JobState& claimant) {
  for (const JobId id : claimant.nomination->victims) {
    const JobState* victim = state.job(id);
    if (victim != nullptr && state::goes_on_without(*victim, claimant.id)) trial.let_off(id);
  }
}

bool nobody_has_left_for(const State& state, const JobState& claimant) {
  const state::Nomination& promise = *claimant.nomination;
  for (std::size_t v = 0; v < promise.victims.size(); ++v) {
    if (promise.keep_of(v) > 0) continue;
    const JobState* victim = state.job(promise.victims[v]);
    if (victim != nullptr && !state::goes_on_without(*victim, claimant.id)) return false;
  }
  return true;
}

bool could_be_stopped(Trial& trial, State& state, const JobState& job, const std::vector<TaskPlacement>& placements,
                      const std::set<JobId>& spoken_for, Timestamp now, PlaceWork& work) {
  if (least_run_s(state, job) > 0) return false;
  const Start start = start_of(state, job, placements);
  const std::vector<const JobState*> contestants = all_who_might_stop(state, start, now);
  if (contestants.empty()) return false;
  Contestants ask(trial, state, spoken_for, now, work);
  const Trial::Mark mark = trial.mark();
  trial.start(job.id, start.placements);
  const bool could = std::any_of(contestants.begin(), contestants.end(),
                                 [&](const JobState* one) { return ask.could_stop(*one, start); });
  trial.rollback_to(mark);
  return could;
}

bool could_stop(Trial& trial, State& state, const JobState& waiting, const JobState& job,
                const std::vector<TaskPlacement>& placements, const std::set<JobId>& spoken_for, Timestamp now,
                PlaceWork& work) {
  const Start start = start_of(state, job, placements);
  Contestants ask(trial, state, spoken_for, now, work);
  const Trial::Mark mark = trial.mark();
  trial.start(job.id, start.placements);
  const bool could = ask.stops(waiting, start);
  trial.rollback_to(mark);
  return could;
}

std::vector<const JobState*> who_could_stop(Trial& trial, State& state, const JobState& job,
                                            const std::vector<TaskPlacement>& placements,
                                            const std::set<JobId>& spoken_for, Timestamp now, PlaceWork& work) {
  const bool has_moved = job.nomination && job.nomination->has_moved();  // its minimum run time goes on
  if (!has_moved && least_run_s(state, job) > 0) return {};
  const Start start = start_of(state, job, placements);
  std::vector<const JobState*> contestants = all_who_might_stop(state, start, now);
  if (contestants.empty()) return {};
  const std::size_t asked = std::min(contestants.size(), kMostContestants);
  std::partial_sort(contestants.begin(), contestants.begin() + static_cast<std::ptrdiff_t>(asked), contestants.end(),
                    is_asked_before);
  contestants.resize(asked);
  Contestants ask(trial, state, spoken_for, now, work);
  const Trial::Mark mark = trial.mark();
  trial.start(job.id, start.placements);
  std::erase_if(contestants, [&](const JobState* one) { return !ask.stops(*one, start); });
  trial.rollback_to(mark);
  return contestants;
}

JobId first_kept_waiting(Trial& trial, State& state, const JobState& claimant, const Promise& promise,
                         std::vector<const JobState*> contestants, const std::set<JobId>& spoken_for, Timestamp now,
                         PlaceWork& work) {
  if (contestants.empty()) return JobId::none();
  Contestants ask(trial, state, spoken_for, now, work);
  const Trial::Mark mark = trial.mark();
  if (claimant.nomination) {
    let_off_victims(trial, state, claimant);
    have_given_back(trial, state, claimant);
  }
  std::erase_if(contestants, [&](const JobState* one) { return !ask.starts_or_claims(*one); });
  trial.rollback_to(mark);
  trial.nominate(claimant.id, promise.placements, promise.within);
  std::erase_if(contestants, [&](const JobState* one) { return ask.starts_or_claims(*one); });
  trial.rollback_to(mark);
  if (contestants.empty()) return JobId::none();
  return (*std::min_element(contestants.begin(), contestants.end(), is_asked_before))->id;
}

Outlook outlook(Trial& trial, State& state, const JobState& claimant, const Promise& promise, const Leaving& leaving,
                const std::set<JobId>& spoken_for, Timestamp now, PlaceWork& work) {
  std::set<JobId> gone = spoken_for;
  gone.insert(leaving.victims.begin(), leaving.victims.end());
  const Trial::Mark mark = trial.mark();
  have_left(trial, leaving);
  auto contestants = who_could_stop(trial, state, claimant, promise.placements, gone, now, work);
  Outlook found;
  Contestants ask(trial, state, gone, now, work);
  for (const JobState* one : contestants) {
    if (trial.holds(one->id) || gains_likewise(state, claimant, leaving, *one)) continue;  // started by this cycle
    found.reclaimed = true;
    if (!ask.leaves_nothing(*one, claimant)) continue;
    found.in_vain_for = one->id;
    break;
  }
  trial.rollback_to(mark);
  found.gives_way_to =
      first_kept_waiting(trial, state, claimant, promise, std::move(contestants), spoken_for, now, work);
  return found;
}

ClaimFound find_claim(Trial& trial, VictimSearch search, const JobState& claimant, PlaceWork& work) {
  constexpr int kMostClaims = 3;
  const std::set<JobId>& spoken_for = search.spoken_for;
  std::set<JobId> avoided = spoken_for;
  ClaimFound best;
  for (int tried = 0; tried < kMostClaims; ++tried) {
    VictimSearch among{search.state, search.now, avoided, search.budget};
    among.stopped = search.stopped;
    ClaimFound found{find_victims(among, claimant.id, work), {}};
    if (!found.decision) break;
    EvictDecision& decision = *found.decision;
    decision.within = promised_within(search.state, claimant, decision.placements, decision.victims, decision.keeps);
    found.outlook = outlook(trial, search.state, claimant, {decision.placements, decision.within},
                            {decision.victims, decision.keeps}, spoken_for, search.now, work);
    avoided.insert(decision.victims.begin(), decision.victims.end());
    if (!found.outlook.reclaimed) return found;
    const bool better = best.decision && best.outlook.in_vain_for.valid() && !found.outlook.in_vain_for.valid();
    if (!best.decision || better) best = std::move(found);
    if (best.outlook.gives_way_to.valid()) break;  // he is asked first
  }
  return best;
}

Contest contest(Trial& trial, State& state, const JobState& claimant, const std::vector<TaskPlacement>& placements,
                Timestamp now, PlaceWork& work) {
  if (least_run_s(state, claimant) > 0) return {};  // nobody may stop it at once
  const Start start = start_of(state, claimant, placements);
  std::vector<const JobState*> contestants = all_who_might_stop(state, start, now);
  if (contestants.empty()) return {};
  const std::set<JobId> nobody;
  Contestants ask(trial, state, nobody, now, work);
  const bool all_go_on = nobody_has_left_for(state, claimant);
  const Trial::Mark mark = trial.mark();
  let_off_victims(trial, state, claimant);
  trial.start(claimant.id, start.placements);
  const auto harmless = [&](const JobState* one) { return !ask.could_stop(*one, start); };
  if (!all_go_on) {
    Contest found{!std::all_of(contestants.begin(), contestants.end(), harmless)};
    trial.rollback_to(mark);
    return found;
  }
  std::erase_if(contestants, harmless);
  trial.rollback_to(mark);
  const bool contested = !contestants.empty();
  const Promise promise{claimant.nomination->placements, claimant.nomination->within};
  return {contested, first_kept_waiting(trial, state, claimant, promise, std::move(contestants), nobody, now, work)};
}

}  // namespace berth::sched
