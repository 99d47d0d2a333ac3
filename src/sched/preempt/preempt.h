#pragma once
// Who must leave so that a claimant fits. Reclaim takes back what gangs of other branches have borrowed, for a claimant
// that lies within its guarantee, be it by taking room that is used there only because it is idle; preemption takes
// from lower priorities of the same queue, and where the queue orders its jobs by attained service
// (state/attained_service.h), from higher levels of the same priority, if what they have done is saved when they are
// asked to leave. Nothing is evicted without proof, on a trial, that the claimant then fits; the set is minimal: with
// any victim left out, the claimant would not fit. For a claimant that asks GPUs those who hold some are looked at
// first, and who holds only CPU and memory where that is not enough.
//
// Who keeps coming to its own end soon after its start may stop nobody until it has waited long (state/back_off.h): it
// would do so at every try.
//
// Shrinking comes first. What an elastic gang has beyond its least counts is given back before anybody is evicted, as
// few tasks as do, the last ones first, and without regard to the minimum run time, because no work ends. Reclaim takes
// of it what is borrowed; a gang whose least part is within stays, whatever it has grown by. Preemption takes it also
// for a claimant of the same priority: what somebody needs to run at all goes before what makes others faster. So does
// reclaim without a guarantee, of borrowed growth alone, where the claimant's side below the lowest common ancestor
// would have no more of the fleet over its weight, with the claimant's least part, than the growing side has (what is
// bound and promised; sched/queue/share.h). For a claimant that its user's limit holds back, only that user's growth
// counts.
//
// What stands in burst pools is borrowed everywhere. It is reclaimed where it uses up a ceiling that the claimant is
// below, but nobody is reclaimed for its places: a claimant takes those that back guarantees. Preemption within a queue
// takes places of any pool.
//
// Termination. For fixed demand and capacity every eviction raises a potential that is bounded, and nothing lowers it;
// so there are finitely many. It is the pair, the first outweighing the second, of
//   1. the number of jobs that wait and never gave way to another, negated;
//   2. the ranks of all least parts that run, as a multiset of which one higher outweighs any number of lower ones. A
//      rank is: within or not at each depth, from the top of the tree; then the priority; then the level of attained
//      service, the lowest first. Growth has the lowest rank of all.
// A reclaiming claimant is within where its victims are not, or comes to be when it starts, by displacement
// (control/guarantee_accounting.h); a preempting one has the higher priority or the lower level. Neither alone makes
// its rank higher. Two large gangs of high priority in two queues and a small one within the guarantee of each went in
// a circle: each gang stopped the small one of its own queue, which reclaimed from the other gang. So who gave way
// before (once stopped by reclaim or preempt) stops only those whom it outranks; who did not lowers the first number by
// starting. What a claimant is promised within a guarantee is kept for it: nobody is promoted into it, nor starts
// within it. A least part that is within at a child takes the room at the parent from what is within there and borrows
// at a child (control/guarantee_accounting.h), where its rank then is higher than theirs were. Levels of what runs
// change with time, but each job's rises at most once per threshold and falls once, when it is promoted.
// potential_property_test holds all of it against random trees.

#include <optional>
#include <set>

#include "base/timestamp.h"
#include "model/plan.h"
#include "sched/place/place.h"
#include "sched/preempt/eviction_limits.h"
#include "state/state.h"
#include "state/transaction.h"

namespace berth::sched {

struct SharedVictimCandidates;  // sched/preempt/victim_candidates.h

// What the limits of queues on evictions mean to a search.
enum class QueueLimits {
  kChoose,  // no more of a queue's gangs are looked at than may be stopped, the first to go first
  kCheck,   // all are looked at, and those who would be stopped may be
  kIgnore,
};

struct VictimSearch {
  state::State& state;
  Timestamp now;
  const std::set<JobId>& already_victims;  // already victims in this cycle
  std::size_t budget;                      // at most so many that lose all they have
  // Set where nobody asks who would leave, but only whether somebody could: any decision will do then, and none where
  // there are more than the budget, which the work says. Whom one claimant might stop is kept there for the next, as
  // long as nothing changes.
  SharedVictimCandidates* only_whether = nullptr;
  bool largest = false;  // of more than the budget those that hold most are looked at, not those that would go first
  // For a claimant that asks GPUs those without any are looked at, too: they hold CPU and memory beside GPUs.
  bool without_gpus = false;
  const StoppedBelow* stopped = nullptr;  // by this cycle
  QueueLimits queue_limits = QueueLimits::kChoose;
  // Whoever else would go first, this one does: it is among the victims unless the claimant does not need it at all.
  JobId first = JobId::none();
};

// The eviction that makes the waiting job fit, or nothing.
std::optional<EvictDecision> find_victims(const VictimSearch& search, JobId preemptor, SearchStats& work);

// How many more gangs may be stopped now: by this cycle, which has stopped `already`, and within the hour.
std::size_t eviction_budget(const state::State& state, Timestamp now, std::size_t already);

// When the running job began to run. Moves (sched/resize/consolidate.h) are left out: they give nobody a new minimum.
Timestamp runs_since(const state::JobState& job);
// Whether it has been moved after that time.
bool has_moved_since(const state::JobState& job, Timestamp time);

// How long the job runs at least once it has started: for so long nobody stops it as a whole.
struct LeastRun {
  std::int64_t seconds = 0;
  QueueId terms_of;             // the queue whose terms of eviction say so; the root: the cluster's
  bool after_eviction = false;  // because it was stopped for another the last time
};
LeastRun least_run(const state::State& state, const state::JobState& job);
inline std::int64_t least_run_s(const state::State& state, const state::JobState& job) {
  return least_run(state, job).seconds;
}

// When the running job has run its minimum, which is longer for one that was reclaimed or preempted the last time.
Timestamp may_be_stopped_from(const state::State& state, const state::JobState& job);

// Whether a search for victims could find any at all, now or when time has passed: somebody of lower priority, or who
// may come to stand on a higher level, runs in the same queue, or the job, which counts `asked` at least, lies inside a
// guarantee on its way to the root.
bool may_evict_others(const state::State& state, const state::JobState& job, const Amounts& asked);

// GPU-milliseconds of work that stopping the job now would lose: since its last checkpoint, or nothing if it saves on
// signal. Without GPUs it counts as one.
std::int64_t loss_of_stopping(const state::RunningRow& row, Timestamp now);

}  // namespace berth::sched
