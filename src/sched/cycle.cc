#include "sched/cycle.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "base/planted.h"
#include "sched/admit.h"
#include "sched/backfill.h"
#include "sched/consolidate.h"
#include "sched/contested.h"
#include "sched/fit.h"
#include "sched/gang.h"
#include "sched/grow.h"
#include "sched/neighbours.h"
#include "sched/node_fit.h"
#include "sched/openings.h"
#include "sched/order.h"
#include "sched/place.h"
#include "sched/preempt.h"
#include "sched/quota.h"
#include "sched/topology.h"
#include "sched/waking.h"
#include "state/trial.h"

namespace berth::sched {

namespace {

using state::JobState;
using state::State;
using state::Trial;

struct Cycle {
  State& state;
  Timestamp now;
  Trial trial;
  Plan plan;
  PlaceWork work;
  std::set<JobId> victims;       // chosen in this cycle
  std::size_t evicted = 0;       // of them, those that lose all they have
  StoppedBelow stopped_below;    // likewise
  std::vector<Ending> starting;  // by this cycle
  std::set<JobId> decided;       // started or nominated by it
  std::set<JobId> unpromised;    // whose promises it has served or dropped
  bool refused_there = false;    // quota has refused somebody the places that he found
  std::vector<JobId> yielded;    // who could have claimed: somebody who waits would have stopped them at once
  bool lets_off = false;         // who is leaving for somebody who starts elsewhere
  Questions questions;
  Openings openings;

  Cycle(State& s, Timestamp t) : state(s), now(t), trial(s), questions(s) {}
};

// What goes beyond the least counts is bound as a step of growth at once.
void start(Cycle& cycle, JobId id, std::vector<TaskPlacement> placements) {
  StartAndGrowth split = split_growth(cycle.state.job(id)->spec, std::move(placements));
  cycle.trial.place(id, split.start);
  cycle.decided.insert(id);
  const JobState& job = *cycle.state.job(id);
  cycle.starting.push_back(ending(cycle.state, job, split.start, cycle.now));
  cycle.plan.decisions.emplace_back(StartDecision{id, std::move(split.start)});
  if (split.growth.empty()) return;
  cycle.trial.grow(id, split.growth);
  cycle.plan.decisions.emplace_back(GrowDecision{id, std::move(split.growth)});
}

// What the job counts at its places, if that borrows where by `least` it would not: nodes and models differ. Who would
// be within goes before it, or it would be stopped as soon as it has started.
std::optional<Amounts> borrows_after_all(const State& state, const JobState& job, const Amounts& least,
                                         const std::vector<TaskPlacement>& placements) {
  const Amounts counts =
      state.amounts_of(job.spec, job.is_elastic() ? split_growth(job.spec, placements).start : placements);
  if (counts == least) return std::nullopt;
  for (QueueId q = job.queue; q != state.root(); q = state.queue(q).parent) {
    if (would_be_within(state, q, least) && !would_be_within(state, q, counts)) return counts;
  }
  return std::nullopt;
}

// Whether it would borrow there because some of it is in a burst pool, where by what it counts it would be within.
bool borrows_by_burst(const State& state, const JobState& job, const Amounts& counts,
                      const std::vector<TaskPlacement>& placements) {
  if (!state.burst_amounts_of(job.spec, placements)) return false;
  for (QueueId q = job.queue; q != state.root(); q = state.queue(q).parent) {
    if (would_be_within(state, q, counts)) return true;
  }
  return false;
}

// Whether it would borrow there and not where it is promised places: who starts so could be stopped at once, and would
// claim again.
bool stands_lower(const State& state, const JobState& claimant, const std::vector<TaskPlacement>& placements) {
  const state::Nomination& promise = *claimant.nomination;
  return borrows_after_all(state, claimant, promise.amounts, placements) ||
         (!state.burst_amounts_of(claimant.spec, promise.placements) &&
          borrows_by_burst(state, claimant, promise.amounts, placements));
}

bool leaves_for(const State& state, JobId id, JobId claimant) {
  const JobState* victim = state.job(id);
  return victim != nullptr && victim->attempt && victim->attempt->stop && victim->attempt->stop->claimant == claimant;
}

bool waits_for_victims(const State& state, const JobState& claimant) {
  const auto& victims = claimant.nomination->victims;
  return std::any_of(victims.begin(), victims.end(), [&](JobId id) { return leaves_for(state, id, claimant.id); });
}

// Whether the claimant may take its promised places. Its nomination must be lifted.
bool may_take(Cycle& cycle, const JobState& job) {
  const auto& placements = job.nomination->placements;
  const auto refusal = refuses(cycle.state, job, placements);
  // What is kept back may be more when the victims have left; before they have, nobody takes what others keep.
  const bool kept_back = refusal && refusal->code == ReasonCode::kQueueLending;
  if (refusal && (!kept_back || waits_for_victims(cycle.state, job))) return false;
  if (!Neighbours(cycle.state, job).allow(placements)) return false;
  const Gang gang(cycle.state, job, kAllModels, cycle.work);
  if (!lie_within(cycle.state, placements, job_levels(gang))) return false;  // a configuration has other levels
  std::map<NodeId, Taken> taken;
  std::vector<TaskAsk> asks;
  for (std::size_t g = 0; g < job.spec.groups.size(); ++g) asks.push_back(task_ask(cycle.state, job, g, kAllModels));
  for (const TaskPlacement& placement : placements) {
    const state::NodeState& node = cycle.state.node(placement.node);
    Taken& here = taken[placement.node];
    here.add(placement);
    const TaskAsk& ask = asks[placement.group];
    // A configuration may have closed the pool since, and the node may have joined again with other taints and labels.
    const bool allowed = ask.classes[cycle.state.node_index().class_of(node.id).index()];
    if (!allowed || !has_labels(ask.group, node.spec)) return false;
    if (closing(ask, node)) return false;
    if (!node.takes_tasks() || node.available_cpu_milli() < here.cpu_milli) return false;
    if (node.available_memory_mib() < here.memory_mib) return false;
    for (const std::uint8_t gpu : placement.gpus) {
      if (node.gpus[gpu].available_milli() < here.milli[gpu]) return false;
      if ((node.gpus[gpu].unavailable_slices() & here.slices[gpu]) != 0) return false;
      const bool share = placement.gpu_milli < kMilli && placement.slices == 0;
      if (share && !node.gpus[gpu].takes_shares_of(cycle.state.queue(job.queue).trust_domain)) return false;
    }
  }
  return true;
}

// The same as long as its victims are there: what is idle beside them may be held for somebody whom it may not pass.
bool may_take_beside_holds(Cycle& cycle, const JobState& job) {
  const Trial::Mark mark = cycle.trial.mark();
  for (const JobId owner : not_passed(cycle.state, job, cycle.now))
    cycle.trial.set_aside(owner, cycle.state.job(owner)->start_hold->placements);
  const bool may = may_take(cycle, job);
  cycle.trial.rollback_to(mark);
  return may;
}

// Those who are leaving for the claimant, as if they had left.
void let_leave(Cycle& cycle, JobId claimant) {
  for (const JobId id : cycle.state.job(claimant)->nomination->victims) {
    if (!leaves_for(cycle.state, id, claimant)) continue;
    const std::uint32_t keep = cycle.state.job(id)->attempt->stop->keep;
    if (keep > 0)
      cycle.trial.shrink(id, keep);
    else
      cycle.trial.remove(id);
  }
}

// Whether the promised places are free by now and quota still allows them. What others are promised counts, and so do
// those who are leaving for them, though what the latter hold is what the former are promised: so it is enough if there
// is room now, without the other promises, and will be when all those have left. The nomination must be lifted.
bool keeps_promise(Cycle& cycle, const JobState& job) {
  if (waits_for_victims(cycle.state, job)) return may_take_beside_holds(cycle, job);
  if (may_take(cycle, job)) return true;
  std::vector<JobId> others(cycle.state.nominated().begin(), cycle.state.nominated().end());
  std::erase_if(others, [&](JobId id) { return id == job.id || cycle.unpromised.contains(id); });
  if (others.empty()) return false;
  const Trial::Mark mark = cycle.trial.mark();
  for (const JobId id : others) cycle.trial.lift_nomination(id);
  const bool now = may_take(cycle, job);
  cycle.trial.rollback_to(mark);
  if (!now) return false;
  for (const JobId id : others) let_leave(cycle, id);
  const bool then = may_take(cycle, job);
  cycle.trial.rollback_to(mark);
  return then;
}

// What was promised to the claimant is free for this cycle, and trials mark nothing: who sleeps has to be told.
void stir_sleepers(State& state, const JobState& claimant) {
  if (planted(Bug::kSleepersNotTold)) return;
  state::WaitLists& waits = state.waits();
  for (const TaskPlacement& placement : claimant.nomination->placements) {
    waits.ease(placement.node);
    for (const NodeId node : state.kept_apart_with(placement.node)) waits.ease(node);
  }
  for (QueueId q = claimant.queue; q.valid(); q = state.queue(q).parent) waits.ease(q);
  waits.mark_changed();
}

// Its victims go on, and the others are asked when that has been done.
void give_way(Cycle& cycle, const JobState& job, const Outlook& then) {
  cycle.unpromised.insert(job.id);
  cycle.lets_off = true;
  const bool to_one = then.gives_way_to.valid();
  const std::string other = "job " + std::to_string((to_one ? then.gives_way_to : then.in_vain_for).value());
  cycle.plan.decisions.emplace_back(
      DropNominationDecision{job.id, to_one ? other + " needs what it keeps, and could stop it as soon as it starts"
                                            : other + " would reclaim from it as soon as it starts"});
  let_off_victims(cycle.trial, cycle.state, job);
}

// It waits in its queue again, and what it was promised is free for others.
void drop_promise(Cycle& cycle, const JobState& job, const char* why) {
  cycle.unpromised.insert(job.id);
  cycle.plan.decisions.emplace_back(DropNominationDecision{job.id, why});
  stir_sleepers(cycle.state, job);
}

// Whether somebody who waits by now could stop it as soon as it has started, for whom others move: then they have moved
// for nobody, and lose nothing by it. Its nomination must be lifted.
bool moves_are_in_vain(Cycle& cycle, const JobState& job) {
  if (job.nomination->cause != StopCause::kConsolidate) return false;
  const Trial::Mark mark = cycle.trial.mark();
  let_leave(cycle, job.id);
  const std::set<JobId> leaving(job.nomination->victims.begin(), job.nomination->victims.end());
  const bool could =
      could_be_stopped(cycle.trial, cycle.state, job, job.nomination->placements, leaving, cycle.now, cycle.work);
  cycle.trial.rollback_to(mark);
  return could;
}

// Of a promise for which nobody has left yet. Its nomination must be lifted.
Outlook outlook_of_promise(Cycle& cycle, const JobState& job) {
  const bool by_moves = job.nomination->cause == StopCause::kConsolidate;
  if (by_moves || !nobody_has_left_for(cycle.state, job)) return {};
  std::vector<JobId> victims;
  std::vector<std::uint32_t> keeps;
  for (const JobId id : job.nomination->victims) {
    if (!leaves_for(cycle.state, id, job.id)) continue;
    victims.push_back(id);
    keeps.push_back(cycle.state.job(id)->attempt->stop->keep);
  }
  const Trial::Mark mark = cycle.trial.mark();
  let_leave(cycle, job.id);
  const bool may = may_take(cycle, job);
  cycle.trial.rollback_to(mark);
  if (!may) return {};
  return outlook(cycle.trial, cycle.state, job, {job.nomination->placements, job.nomination->within}, {victims, keeps},
                 cycle.victims, cycle.now, cycle.work);
}

// At those places and no others: it gives way to nobody to whom it would not have where it ran, but who came meanwhile
// and could stop it as soon as it starts does not wait for that.
void serve_who_has_moved(Cycle& cycle, const JobState& job) {
  if (!may_take(cycle, job)) return drop_promise(cycle, job, "it may not run any more where it was to move");
  const auto& placements = job.nomination->placements;
  if (!who_could_stop(cycle.trial, cycle.state, job, placements, cycle.victims, cycle.now, cycle.work).empty())
    return drop_promise(cycle, job, "somebody who waits could stop it as soon as it starts");
  cycle.unpromised.insert(job.id);
  start(cycle, job.id, placements);
  stir_sleepers(cycle.state, job);
}

// Claimants whose victims are leaving go first: where they were promised a place, or wherever they fit by now and
// nobody who waits could stop them at once.
void serve_nominations(Cycle& cycle) {
  std::vector<JobId> claimants(cycle.state.nominated().begin(), cycle.state.nominated().end());
  std::sort(claimants.begin(), claimants.end(), [&](JobId a, JobId b) {
    const JobState& left = *cycle.state.job(a);
    const JobState& right = *cycle.state.job(b);
    return std::tuple(-left.priority, left.submitted, left.id) < std::tuple(-right.priority, right.submitted, right.id);
  });
  for (const JobId id : claimants) {
    const Trial::Mark mark = cycle.trial.mark();
    ++cycle.plan.jobs_asked;
    cycle.trial.lift_nomination(id);
    const JobState& job = *cycle.state.job(id);
    Reason why;
    if (job.nomination->has_moved()) {
      serve_who_has_moved(cycle, job);
      continue;
    }
    if (moves_are_in_vain(cycle, job)) {
      drop_promise(cycle, job, "somebody who waits could stop it as soon as it starts");
      continue;
    }
    auto placements = fit_beside_holds(cycle.trial, cycle.state, job, cycle.now, cycle.work, why);
    if (placements && stands_lower(cycle.state, job, *placements)) placements.reset();
    Contest found;
    if (placements) found = contest(cycle.trial, cycle.state, job, *placements, cycle.now, cycle.work);
    if (found.contested) placements.reset();
    if (found.gives_way_to.valid()) {
      give_way(cycle, job, {found.gives_way_to});
      continue;
    }
    if (!placements) {
      const Outlook then = outlook_of_promise(cycle, job);
      if (then.gives_way_to.valid() || then.in_vain_for.valid()) {
        give_way(cycle, job, then);
        continue;
      }
    }
    // Who was leaving for it is let off, and may be claimed from again: the others are asked when that has been done.
    cycle.lets_off = cycle.lets_off || (placements && waits_for_victims(cycle.state, job));
    if (!placements && keeps_promise(cycle, job)) placements = job.nomination->placements;
    if (placements) {
      cycle.unpromised.insert(id);
      start(cycle, id, std::move(*placements));
      stir_sleepers(cycle.state, job);
    } else if (!waits_for_victims(cycle.state, job)) {
      // Nobody is leaving for it any more.
      drop_promise(cycle, job, "it does not fit though its victims have left");
    } else {
      cycle.trial.rollback_to(mark);
      why.code = ReasonCode::kWaitsForVictims;
      cycle.plan.refused.emplace_back(id, why);
    }
  }
}

// Step 6: who must leave. The victims keep what they hold until they are gone; the claimant is promised its places.
// Nobody is asked to leave in vain nor, unless `at_any_rate`, for a promise that would give way at once.
bool nominate(Cycle& cycle, JobId id, bool at_any_rate = false) {
  const std::size_t budget = eviction_budget(cycle.state, cycle.now, cycle.evicted);
  VictimSearch search{cycle.state, cycle.now, cycle.victims, budget};
  search.stopped = &cycle.stopped_below;
  auto [decision, then] = find_claim(cycle.trial, search, *cycle.state.job(id), cycle.work);
  if (!decision || then.in_vain_for.valid()) return false;
  if (then.gives_way_to.valid() && !at_any_rate) {
    cycle.yielded.push_back(id);
    return false;
  }
  cycle.victims.insert(decision->victims.begin(), decision->victims.end());
  for (std::size_t v = 0; v < decision->victims.size(); ++v) {
    if (decision->keeps[v] > 0) continue;
    ++cycle.evicted;
    count_stopped(cycle.state, cycle.state.job(decision->victims[v])->queue, cycle.stopped_below);
  }
  cycle.decided.insert(id);
  cycle.trial.nominate(id, decision->placements, decision->within);
  cycle.plan.decisions.emplace_back(std::move(*decision));
  return true;
}

// Steps 4 and 5, unless somebody who asked the same was refused before.
std::optional<std::vector<TaskPlacement>> seek_places(Cycle& cycle, const JobState& job, const Amounts& least,
                                                      Reason& why) {
  const Admission admission = admit(cycle.state, job, least);
  if (admission.models == 0) {
    why = admission.reason;
    return std::nullopt;
  }
  // Near somebody who starts in this cycle there may be places yet.
  const bool alike = job.spec.groups.size() == 1 && job.spec.affinity.empty();
  const Questions::Id question = cycle.questions.id_of(job, admission.models);
  if (const auto& refused = cycle.openings.refused(question); alike && refused) {
    why = *refused;
    return std::nullopt;
  }
  auto placements = fit_beside_holds(cycle.trial, cycle.state, job, cycle.now, cycle.work, why);
  if (!placements && alike && is_of_places(why.code)) cycle.openings.refuse(question, why);
  cycle.refused_there = cycle.refused_there || (!placements && is_of_quota(why.code));
  return placements;
}

// Whether somebody who has put off a claim in this cycle would stop the job when he makes it.
bool is_in_the_way_of_who_yielded(Cycle& cycle, const JobState& job, const std::vector<TaskPlacement>& placements) {
  return std::any_of(cycle.yielded.begin(), cycle.yielded.end(), [&](JobId claimant) {
    const JobState& waiting = *cycle.state.job(claimant);
    return could_stop(cycle.trial, cycle.state, waiting, job, placements, cycle.victims, cycle.now, cycle.work);
  });
}

void ask(Cycle& cycle, Order& order, JobId id) {
  ++cycle.plan.jobs_asked;
  const std::size_t lane = order.lane_of_last();
  if (const Reason* closed = cycle.openings.closed(cycle.state, lane)) {
    cycle.plan.refused.emplace_back(id, *closed);
    order.refuse();
    return cycle.openings.shut(lane);
  }
  const JobState& job = *cycle.state.job(id);
  const Amounts& least = *cycle.openings.asked()[lane].least;
  Reason why;
  if (auto placements = seek_places(cycle, job, least, why)) {
    if (const auto counts = borrows_after_all(cycle.state, job, order.counts_of_last(), *placements)) {
      return order.ask_as(*counts);
    }
    if (!order.asked_as_borrowing() && borrows_by_burst(cycle.state, job, order.counts_of_last(), *placements)) {
      return order.ask_as_borrowing();
    }
    const auto reclaims = [&](JobId owner) {
      return could_stop(cycle.trial, cycle.state, *cycle.state.job(owner), job, *placements, cycle.victims, cycle.now,
                        cycle.work);
    };
    if (order.yields_to_owner(reclaims)) return;
    if (is_in_the_way_of_who_yielded(cycle, job, *placements)) {
      cycle.work.ask_again_at = cycle.now;
      order.refuse();
      return cycle.openings.shut(lane);
    }
    start(cycle, id, std::move(*placements));
    return cycle.openings.take();
  }
  // Places that are held for others are taken to whom may not pass: it claims others as if nothing were free.
  const bool delays = why.code == ReasonCode::kBehindHold;
  const bool claims =
      !is_never(why.code) && !cycle.openings.claimed_in_vain(lane) && may_claim(cycle.state, job, least);
  if (claims && nominate(cycle, id)) return cycle.openings.take();
  if (claims) cycle.openings.claim_in_vain(lane);
  // What it could have had when the cycle began went to jobs of this cycle, and nobody is stopped before he runs. From
  // those who borrow it takes its place back as soon as it is asked again.
  if (claims && !cycle.plan.decisions.empty()) cycle.work.ask_again_at = cycle.now;
  cycle.plan.refused.emplace_back(id, why);
  if (delays) {
    order.refuse_as_long();
  } else {
    order.refuse();
    cycle.openings.shut(lane);
  }
}

// Who yielded a claim is asked again when he to whom it did has been served, and claims if nobody was.
void claim_after_all(Cycle& cycle) {
  if (cycle.yielded.empty()) return;
  if (!cycle.plan.decisions.empty()) {
    cycle.work.ask_again_at = cycle.now;
    return;
  }
  for (const JobId id : cycle.yielded) {
    if (nominate(cycle, id, true)) return;
  }
}

// Those who need not be asked, because places like theirs were refused to others.
void refuse_rest(Cycle& cycle, const Order& order) {
  if (!cycle.openings.refuses_any()) return;
  for (const JobId id : order.rest()) {
    const JobState& job = *cycle.state.job(id);
    if (cycle.decided.contains(id)) continue;
    if (const auto why = cycle.openings.refused(state::LaneKey{job.queue, job.shape}))
      cycle.plan.refused.emplace_back(id, *why);
  }
}

constexpr std::int64_t kMovesSoughtEveryMs = 60'000;  // as starts to hold are

// Others move to other places where a job then fits; sought when the lack of places has just been looked at.
void consolidate(Cycle& cycle) {
  const auto sought = [](const Decision& decision) { return std::holds_alternative<SeekDecision>(decision); };
  if (std::none_of(cycle.plan.decisions.begin(), cycle.plan.decisions.end(), sought)) return;
  auto decision =
      find_moves({cycle.state, cycle.trial, cycle.now, cycle.work, cycle.victims, cycle.decided}, cycle.plan);
  if (!decision) {
    // Whoever has started in this cycle may be moved when that has been done.
    const bool any_started = !cycle.decided.empty() && cycle.state.config().scheduling.moves_per_hour > 0;
    if (any_started) cycle.work.ask_again_at = std::min(cycle.work.ask_again_at, cycle.now + kMovesSoughtEveryMs);
    return;
  }
  decision->within = promised_within(cycle.state, *cycle.state.job(decision->claimant), decision->placements, {}, {});
  cycle.decided.insert(decision->claimant);
  cycle.trial.nominate(decision->claimant, decision->placements, decision->within);
  for (const Move& move : decision->moves) {
    cycle.victims.insert(move.job);
    cycle.trial.set_aside(move.job, move.to);
  }
  cycle.plan.decisions.emplace_back(std::move(*decision));
}

void grow_beside_holds(Cycle& cycle) {
  const Trial::Mark mark = cycle.trial.mark();
  set_held_aside(cycle.state, cycle.trial, cycle.plan);
  grow_gangs({cycle.state, cycle.trial, cycle.now, cycle.victims, cycle.work}, cycle.plan);
  cycle.trial.rollback_to(mark);
}

}  // namespace

Plan run_cycle(State& state, Timestamp now) {
  // 1. The state is current; everything below is tried on its undo log.
  Cycle cycle(state, now);
  state.pass_deadlines(now);
  // 2. Promises first.
  serve_nominations(cycle);
  if (cycle.lets_off) {
    cycle.plan.ask_again_at = now;
    return std::move(cycle.plan);
  }
  // Who can neither start nor claim sleeps until something that blocks it changes.
  Probed probed = probe_lanes(state, now, cycle.work, cycle.questions, cycle.openings);
  cycle.plan.jobs_asked += probed.refused.size();
  cycle.plan.refused.insert(cycle.plan.refused.end(), std::move_iterator(probed.refused.begin()),
                            std::move_iterator(probed.refused.end()));
  cycle.plan.lanes_probed = probed.lanes;
  cycle.plan.lanes_resumed = probed.resumed;
  // 3. Then the most deserving queue's first job, again and again; 4-6. quota, places beside the
  // holds of others, victims.
  Order order(state, now, cycle.openings.asked());
  while (!cycle.openings.none(state)) {
    const auto leaf = cycle.openings.only_leaf(state);
    const auto job = leaf ? order.next_of(*leaf) : order.next();
    if (!job) break;
    ask(cycle, order, *job);
  }
  refuse_rest(cycle, order);
  claim_after_all(cycle);
  // 7. Places are held for the first that are blocked.
  renew_holds({state, cycle.trial, now, cycle.work, cycle.starting, cycle.decided}, cycle.plan);
  // 8. Moves put together what is free in pieces. What nobody could take and is held for nobody lets elastic gangs
  // grow.
  consolidate(cycle);
  grow_beside_holds(cycle);
  // Where others have started, who was refused the places that he found may find others, which count less.
  const bool any_started = std::any_of(cycle.plan.decisions.begin(), cycle.plan.decisions.end(),
                                       [](const auto& one) { return std::holds_alternative<StartDecision>(one); });
  if (cycle.refused_there && any_started) cycle.work.ask_again_at = now;
  // 9. The plan; the trial takes everything back.
  const auto& sleepers = state.waits().for_time();
  const Timestamp first_due = sleepers.empty() ? Timestamp::never() : sleepers.begin()->first;
  cycle.plan.ask_again_at = std::min({cycle.work.ask_again_at, first_due, state.next_urgent(), state.next_promotion()});
  cycle.plan.nodes_scored = cycle.work.nodes_scored;
  return std::move(cycle.plan);
}

}  // namespace berth::sched
