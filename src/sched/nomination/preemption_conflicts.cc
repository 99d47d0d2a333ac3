#include "sched/nomination/preemption_conflicts.h"

#include <algorithm>
#include <set>
#include <utility>

#include "sched/place/affinity.h"
#include "sched/place/node_fit.h"
#include "sched/place/place.h"
#include "sched/preempt/preempt.h"
#include "sched/queue/admit.h"
#include "sched/queue/quota.h"
#include "sched/resize/elastic.h"
#include "sched/start.h"
#include "state/attained_service.h"
#include "state/grace.h"

namespace berth::sched {

namespace {

using state::JobState;
using state::QueueState;
using state::State;
using state::Transaction;

bool may_use_one_of(const State& state, const JobState& job, const std::vector<TaskPlacement>& placements) {
  for (std::size_t g = 0; g < job.spec.groups.size(); ++g) {
    const TaskRequirements ask = task_requirements(state, job, g, kAllModels);
    for (const TaskPlacement& placement : placements) {
      if (could_hold(state, ask, state.node(placement.node))) return true;
    }
  }
  return false;
}

// Returns the first job that may be evaluated now. Jobs equal to it can do nothing that it cannot.
const JobState* first_of(const State& state, const std::set<state::PendingKey>& jobs, Timestamp now) {
  for (const state::PendingKey& key : jobs) {
    const JobState& waiting = *state.job(key.job);
    if (waiting.not_before <= now && !waiting.nomination) return &waiting;
  }
  return nullptr;
}

// Returns the jobs of one queue that are evaluated: the first of each class, and of a strict queue the first of all.
std::vector<const JobState*> asked_in(const State& state, const QueueState& leaf, Timestamp now) {
  std::vector<const JobState*> asked;
  if (leaf.policy == QueuePolicy::kStrict) {
    if (const JobState* head = first_of(state, leaf.pending, now)) asked.push_back(head);
    return asked;
  }
  for (const auto& [shape, eq_class] : leaf.eq_classes) {
    if (const JobState* head = first_of(state, eq_class, now)) asked.push_back(head);
  }
  return asked;
}

// A preemptor, and where it would start.
struct Start {
  const JobState& job;
  std::vector<TaskPlacement> placements;
  std::optional<Amounts> counts;  // nothing if partly in burst pools: it borrows everywhere
  bool all_burst = false;
};

// Returns where the preemptor would start, and what it would count there. Tasks above min_count are left out: they can
// be scaled down again without ending the job.
Start start_of(const State& state, const JobState& job, const std::vector<TaskPlacement>& found) {
  const std::vector<TaskPlacement> places = job.is_elastic() ? split_growth(job.spec, found).start : found;
  Start start{job, places, state.amounts_of(job.spec, places)};
  if (!state.burst_amounts_of(job.spec, places)) return start;
  start.counts.reset();
  start.all_burst =
      std::all_of(places.begin(), places.end(), [&](const TaskPlacement& place) { return state.is_burst(place.node); });
  return start;
}

// Returns true if a job of the same queue may preempt: it has higher priority, or a lower level if the queue orders by
// attained service and `job` saves on signal.
bool may_preempt(const QueueState& queue, const JobState& waiting, const JobState& job, Timestamp now) {
  if (waiting.priority != job.priority) return waiting.priority > job.priority;
  return !queue.service_thresholds.empty() && job.spec.checkpoint.on_signal &&
         waiting.level < state::level_of(queue, job, now);
}

// Returns true if evicting the job could help the pending one: the job takes a place that it might use, or part of its
// quota, or is where it may not be near.
bool would_gain(const State& state, const JobState& waiting, const Start& start) {
  return may_use_one_of(state, waiting, start.placements) || !admits_all_models(state, waiting) ||
         AffinityFilter(state, waiting).matter();
}

// Collects the pending jobs of a queue, and of all queues below it, that the rules allow to evict the job and that
// would gain by it.
class MightStop {
 public:
  MightStop(const State& state, const Start& start, Timestamp now) : state_(state), start_(start), now_(now) {}

  void add_of_own_queue() {
    const QueueState& own = state_.queue(start_.job.queue);
    for (const JobState* waiting : asked_in(state_, own, now_)) {
      if (waiting->id != start_.job.id && may_preempt(own, *waiting, start_.job, now_)) add(*waiting);
    }
  }

  // Adds jobs of other branches, at each level where the job borrows, if the branch has a guarantee.
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

// Removes the victims in the transaction, as if they had left.
void have_left(Transaction& transaction, const Leaving& leaving) {
  for (std::size_t v = 0; v < leaving.victims.size(); ++v) {
    if (!leaving.keeps.empty() && leaving.keeps[v] > 0)
      transaction.shrink(leaving.victims[v], leaving.keeps[v]);
    else
      transaction.remove(leaving.victims[v]);
  }
}

// Returns true if what a victim frees belongs as much to the challenger as to the preemptor: both are below the same
// child of the common ancestor of preemptor and victim.
bool gains_likewise(const State& state, const JobState& preemptor, const Leaving& leaving, const JobState& challenger) {
  if (challenger.queue == preemptor.queue) return true;
  return std::any_of(leaving.victims.begin(), leaving.victims.end(), [&](JobId id) {
    const JobState& victim = *state.job(id);
    if (victim.queue == preemptor.queue) return false;
    return state.is_below(challenger.queue, below_common_ancestor(state, preemptor.queue, victim.queue).preemptor);
  });
}

// The same search where other jobs are the victims of this cycle.
ConflictSearch with_victims(const ConflictSearch& search, const std::set<JobId>& victims) {
  return {search.transaction, search.state, search.now, victims, search.work, search.reevaluate_at};
}

class Challengers {
 public:
  explicit Challengers(const ConflictSearch& search) : search_(search) {}

  // Requires a transaction in which the job runs.
  bool could_stop(const JobState& waiting, const Start& start) {
    const StartAnswer answer = start_of(waiting);
    if (answer) {
      const bool may = waiting.queue == start.job.queue || !start.all_burst;  // no job is reclaimed for places there
      return may && may_use_one_of(search_.state, waiting, start.placements);
    }
    return !is_never(answer.why.code) && would_evict(waiting, start);
  }

  // The same for a challenger that finds no places beside the job. Places that it finds might be taken by other jobs
  // before it.
  bool stops(const JobState& waiting, const Start& start) {
    const StartAnswer answer = start_of(waiting);
    return !answer && !is_never(answer.why.code) && would_evict(waiting, start);
  }

  // Requires a transaction in which the preemptor's victims have left and it has not started. Returns true if the
  // challenger, once it has what it would evict the preemptor for, leaves it nothing to start on or to evict.
  bool leaves_nothing(const JobState& waiting, const JobState& preemptor) {
    Transaction& transaction = search_.transaction;
    const Transaction::Mark mark = transaction.mark();
    std::set<JobId> gone = search_.already_victims;
    auto placements = start_of(waiting).placements;
    if (!placements) {
      if (const auto eviction = victims_of(waiting, JobId::none())) {
        gone.insert(eviction->victims.begin(), eviction->victims.end());
        have_left(transaction, {eviction->victims, eviction->keeps});
        placements = eviction->placements;
      }
    }
    bool nothing = false;
    if (placements) {
      transaction.start(waiting.id, split_growth(waiting.spec, *placements).start);
      nothing = !Challengers(with_victims(search_, gone)).starts_or_evicts(preemptor);
    }
    transaction.rollback_to(mark);
    return nothing;
  }

  bool starts_or_evicts(const JobState& waiting) {
    const StartAnswer answer = start_of(waiting);
    return answer || (!is_never(answer.why.code) && victims_of(waiting, JobId::none()));
  }

 private:
  StartAnswer start_of(const JobState& waiting) {
    return try_start(search_.transaction, {search_.state, waiting, search_.now, search_.work});
  }

  bool would_evict(const JobState& waiting, const Start& start) {
    const auto eviction = victims_of(waiting, start.job.id);
    return eviction &&
           std::find(eviction->victims.begin(), eviction->victims.end(), start.job.id) != eviction->victims.end();
  }

  std::optional<EvictDecision> victims_of(const JobState& waiting, JobId first) {
    if (!may_evict_others(search_.state, waiting, least_amounts(search_.state, waiting.spec))) return std::nullopt;
    VictimSearch search{search_.state, search_.now, search_.already_victims,
                        eviction_budget(search_.state, search_.now, 0)};
    search.first = first;
    VictimsFound found = find_victims(search, waiting.id, search_.work);
    search_.reevaluate_at = std::min(search_.reevaluate_at, found.reevaluate_at);
    return std::move(found.decision);
  }

  ConflictSearch search_;
};

bool is_asked_before(const JobState* a, const JobState* b) {
  return state::precedes_elsewhere(pending_key(*a), pending_key(*b));
}

constexpr std::size_t kMostChallengers = 16;  // checked for evictions, in order

// Scales down in the transaction the gangs that scale down for the preemptor: they do so whether the nomination is
// withdrawn or not.
void have_given_back(Transaction& transaction, const State& state, const JobState& preemptor) {
  for (const JobId id : preemptor.nomination->victims) {
    const JobState* victim = state.job(id);
    const bool gives_back = victim != nullptr && victim->attempt && victim->attempt->shrinking() &&
                            victim->attempt->stop->preemptor == preemptor.id;
    if (gives_back) transaction.shrink(id, victim->attempt->stop->keep);
  }
}

}  // namespace

void cancel_evictions_for(Transaction& transaction, const State& state, const JobState& preemptor) {
  for (const JobId id : preemptor.nomination->victims) {
    const JobState* victim = state.job(id);
    if (victim != nullptr && state::goes_on_without(*victim, preemptor.id)) transaction.cancel_eviction(id);
  }
}

bool nobody_has_left_for(const State& state, const JobState& preemptor) {
  const state::Nomination& nomination = *preemptor.nomination;
  for (std::size_t v = 0; v < nomination.victims.size(); ++v) {
    if (nomination.keep_of(v) > 0) continue;
    const JobState* victim = state.job(nomination.victims[v]);
    if (victim != nullptr && !state::goes_on_without(*victim, preemptor.id)) return false;
  }
  return true;
}

namespace {

// Returns what `ask` answers while the start is in the transaction.
template <class Ask>
auto while_started(Transaction& transaction, const Start& start, Ask&& ask) {
  const Transaction::Mark mark = transaction.mark();
  transaction.start(start.job.id, start.placements);
  auto answer = ask();
  transaction.rollback_to(mark);
  return answer;
}

// The first of the challengers that could start or evict if the preemptor, whose nomination is lifted if it has one,
// gave way, and cannot where it is nominated these places; or none().
JobId first_kept_waiting(const ConflictSearch& search, const JobState& preemptor, const NominatedPlaces& nominated,
                         std::vector<const JobState*> challengers) {
  if (challengers.empty()) return JobId::none();
  Transaction& transaction = search.transaction;
  Challengers ask(search);
  const Transaction::Mark mark = transaction.mark();
  if (preemptor.nomination) {
    cancel_evictions_for(transaction, search.state, preemptor);
    have_given_back(transaction, search.state, preemptor);
  }
  std::erase_if(challengers, [&](const JobState* one) { return !ask.starts_or_evicts(*one); });
  transaction.rollback_to(mark);
  transaction.nominate(preemptor.id, nominated.placements, nominated.within);
  std::erase_if(challengers, [&](const JobState* one) { return ask.starts_or_evicts(*one); });
  transaction.rollback_to(mark);
  if (challengers.empty()) return JobId::none();
  return (*std::min_element(challengers.begin(), challengers.end(), is_asked_before))->id;
}

}  // namespace

bool could_be_stopped(const ConflictSearch& search, const JobState& job, const std::vector<TaskPlacement>& placements) {
  if (least_run_s(search.state, job) > 0) return false;
  const Start start = start_of(search.state, job, placements);
  const std::vector<const JobState*> challengers = all_who_might_stop(search.state, start, search.now);
  if (challengers.empty()) return false;
  Challengers ask(search);
  return while_started(search.transaction, start, [&] {
    return std::any_of(challengers.begin(), challengers.end(),
                       [&](const JobState* one) { return ask.could_stop(*one, start); });
  });
}

bool could_stop(const ConflictSearch& search, const JobState& waiting, const JobState& job,
                const std::vector<TaskPlacement>& placements) {
  const Start start = start_of(search.state, job, placements);
  return while_started(search.transaction, start, [&] { return Challengers(search).stops(waiting, start); });
}

std::vector<const JobState*> who_could_stop(const ConflictSearch& search, const JobState& job,
                                            const std::vector<TaskPlacement>& placements) {
  const bool has_moved = job.nomination && job.nomination->has_moved();  // its minimum run time goes on
  if (!has_moved && least_run_s(search.state, job) > 0) return {};
  const Start start = start_of(search.state, job, placements);
  std::vector<const JobState*> challengers = all_who_might_stop(search.state, start, search.now);
  if (challengers.empty()) return {};
  const std::size_t asked = std::min(challengers.size(), kMostChallengers);
  std::partial_sort(challengers.begin(), challengers.begin() + static_cast<std::ptrdiff_t>(asked), challengers.end(),
                    is_asked_before);
  challengers.resize(asked);
  Challengers ask(search);
  return while_started(search.transaction, start, [&] {
    std::erase_if(challengers, [&](const JobState* one) { return !ask.stops(*one, start); });
    return std::move(challengers);
  });
}

NominationConflict find_nomination_conflict(const ConflictSearch& search, const JobState& preemptor,
                                            const NominatedPlaces& nominated, const Leaving& leaving) {
  Transaction& transaction = search.transaction;
  std::set<JobId> gone = search.already_victims;
  gone.insert(leaving.victims.begin(), leaving.victims.end());
  const ConflictSearch without = with_victims(search, gone);
  const Transaction::Mark mark = transaction.mark();
  have_left(transaction, leaving);
  auto challengers = who_could_stop(without, preemptor, nominated.placements);
  NominationConflict found;
  Challengers ask(without);
  for (const JobState* one : challengers) {
    const bool started = transaction.holds(one->id);  // by this cycle
    if (started || gains_likewise(search.state, preemptor, leaving, *one)) continue;
    found.reclaimed = true;
    if (!ask.leaves_nothing(*one, preemptor)) continue;
    found.futile_because_of = one->id;
    break;
  }
  transaction.rollback_to(mark);
  found.withdraws_for = first_kept_waiting(search, preemptor, nominated, std::move(challengers));
  return found;
}

EvictionFound find_eviction(Transaction& transaction, const VictimSearch& search, const JobState& preemptor,
                            SearchStats& work) {
  constexpr int kMostTried = 3;
  std::set<JobId> avoided = search.already_victims;
  Timestamp reevaluate_at = Timestamp::never();
  EvictionFound best;
  for (int tried = 0; tried < kMostTried; ++tried) {
    VictimSearch among{search.state, search.now, avoided, search.budget};
    among.stopped = search.stopped;
    VictimsFound victims = find_victims(among, preemptor.id, work);
    reevaluate_at = std::min(reevaluate_at, victims.reevaluate_at);
    EvictionFound found{std::move(victims.decision), {}, victims.left_out, victims.too_dear};
    if (!found.decision) {
      if (tried == 0) best = std::move(found);
      break;
    }
    EvictDecision& decision = *found.decision;
    decision.within =
        within_of_nomination(search.state, preemptor, decision.placements, decision.victims, decision.keeps);
    found.conflict =
        find_nomination_conflict({transaction, search.state, search.now, search.already_victims, work, reevaluate_at},
                                 preemptor, {decision.placements, decision.within}, {decision.victims, decision.keeps});
    avoided.insert(decision.victims.begin(), decision.victims.end());
    const bool reclaimed = found.conflict.reclaimed;
    const bool less_futile = best.conflict.futile_because_of.valid() && !found.conflict.futile_because_of.valid();
    if (!reclaimed || !best.decision || less_futile) best = std::move(found);
    if (!reclaimed || best.conflict.withdraws_for.valid()) break;  // that challenger is evaluated first
  }
  best.reevaluate_at = reevaluate_at;
  return best;
}

StartConflict find_start_conflict(const ConflictSearch& search, const JobState& preemptor,
                                  const std::vector<TaskPlacement>& placements) {
  if (least_run_s(search.state, preemptor) > 0) return {};  // no job may evict it at once
  const Start start = start_of(search.state, preemptor, placements);
  std::vector<const JobState*> challengers = all_who_might_stop(search.state, start, search.now);
  if (challengers.empty()) return {};
  Transaction& transaction = search.transaction;
  const std::set<JobId> none;
  const ConflictSearch of_all = with_victims(search, none);
  Challengers ask(of_all);
  const auto harmless = [&](const JobState* one) { return !ask.could_stop(*one, start); };
  const bool all_go_on = nobody_has_left_for(search.state, preemptor);
  const Transaction::Mark mark = transaction.mark();
  cancel_evictions_for(transaction, search.state, preemptor);
  transaction.start(preemptor.id, start.placements);
  if (!all_go_on) {
    StartConflict found{!std::all_of(challengers.begin(), challengers.end(), harmless)};
    transaction.rollback_to(mark);
    return found;
  }
  std::erase_if(challengers, harmless);
  transaction.rollback_to(mark);
  const bool has_conflict = !challengers.empty();
  const NominatedPlaces nominated{preemptor.nomination->placements, preemptor.nomination->within};
  return {has_conflict, first_kept_waiting(of_all, preemptor, nominated, std::move(challengers))};
}

}  // namespace berth::sched
