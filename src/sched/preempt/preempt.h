#pragma once
// Preempt: which running jobs must be evicted so that a preemptor fits. Reclaim takes back what gangs of other branches
// have borrowed, for a preemptor within its guarantee. Room that it gets there by displacement counts (claims_within in
// sched/queue/quota.h). Preemption evicts lower priorities of the same queue. If the queue orders by attained service
// (state/attained_service.h), it also evicts jobs of the same priority on higher levels, if they save when they are
// asked to leave. No job is evicted without proof, in a transaction, that the preemptor then fits. The set of victims
// is minimal: without any one of them the preemptor would not fit. For a preemptor that requests GPUs, jobs with GPUs
// are looked at first. Jobs with only CPU and memory are added if these are not enough.
//
// A job that keeps ending by itself soon after its start may not evict until it has waited long (state/back_off.h).
// Otherwise it would evict others at every retry.
//
// Scaling down comes first. Elastic gangs lose their scaled-up tasks before any job is evicted: as few tasks as
// suffice, the last ones first. The minimum run time does not protect these tasks, because no job ends.
// - Reclaim takes scaled-up tasks that are borrowed. A gang whose min_count tasks are within a guarantee stays, however
//   far it has scaled up.
// - Preemption takes scaled-up tasks also for a preemptor of the same priority: what a job needs to run at all goes
//   before what makes another job faster.
// - Reclaim takes borrowed scaled-up tasks, but no whole jobs, also for a preemptor outside its guarantee. Then two
//   sides are compared below the lowest common ancestor, each by its share of the fleet over its weight. The
//   preemptor's side, with the preemptor at min_count, must have no larger share than the gang's side has. What is
//   bound and nominated counts (sched/queue/share.h).
// - If the preemptor's user limit blocks it, only scaled-up tasks of the same user are taken.
//
// Tasks in burst pools are borrowed everywhere. They are reclaimed if they use up a max that the preemptor is below.
// They are never reclaimed for their places: such a preemptor takes places that back guarantees. Preemption within a
// queue takes places of any pool.
//
// Termination. For fixed demand and capacity, every eviction raises a potential that is bounded, and nothing lowers it.
// So there are finitely many evictions. The potential is a pair, of which the first part outweighs the second:
// 1. the number of pending jobs that were never evicted, negated;
// 2. the ranks of the min_count parts of all running jobs, as a multiset in which one higher rank outweighs any number
//    of lower ones. A rank is compared by three things in turn: within or not at each depth, from the top of the tree;
//    then the priority; then the level of attained service, where the lowest level ranks highest. Scaled-up tasks rank
//    below all of these.
//
// A preemptor that reclaims is within where its victims are not, or comes to be so by displacement when it starts
// (control/guarantee_accounting.h). A preemptor that preempts has the higher priority or the lower level. Neither alone
// makes its rank higher. An example went in a circle: two queues, each with a large gang of high priority and a small
// gang within its guarantee. Each large gang preempted the small one of its own queue, which reclaimed from the other
// large gang. Hence the rule: a job that was evicted before, by reclaim or preemption, evicts only jobs that it
// outranks. This raises the second part. A job that was never evicted raises the first part by starting.
//
// Nothing lowers the potential in between. Room that a preemptor is nominated within a guarantee is kept for it: no
// running job is promoted into it, and no job starts within it. A min_count part that is within at a child takes the
// room at the parent from jobs that are within there and borrow at their child (control/guarantee_accounting.h). Its
// rank is then higher than theirs were. Levels of running jobs change with time. But the level of each job rises at
// most once per threshold and falls once, when the job is promoted. potential_property_test checks all of this on
// random trees.

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

// How a search treats the limits of queues on evictions.
enum class QueueLimits {
  kChoose,  // looks at no more candidates of a queue than may be evicted, the first to be evicted first
  kCheck,   // looks at all candidates, and checks the limits for the victims found
  kIgnore,
};

// What is asked of a search for victims.
struct VictimSearch {
  state::State& state;
  Timestamp now;
  const std::set<JobId>& already_victims;  // victims of this cycle so far
  std::size_t budget;                      // at most so many jobs are evicted as a whole
  // Set where only "would any eviction do" is asked. The decision is then empty, and there is none where candidates are
  // left out. The candidates of one preemptor are kept here for the next, as long as nothing changes.
  SharedVictimCandidates* only_whether = nullptr;
  bool largest = false;  // if there are more candidates than the budget: takes the largest, not the first to be evicted
  // Looks at candidates without GPUs too, for a preemptor that requests GPUs: they hold CPU and memory beside GPUs.
  bool without_gpus = false;
  const StoppedBelow* stopped = nullptr;  // evicted by this cycle
  QueueLimits queue_limits = QueueLimits::kChoose;
  // This job is evicted before all others; it is a victim unless the preemptor does not need it at all.
  JobId first = JobId::none();
};

// What a search for victims found: the eviction that makes the pending job fit, or what kept it from one.
struct VictimsFound {
  std::optional<EvictDecision> decision;
  bool left_out = false;           // more candidates than may be evicted now, or in another order others might do
  bool too_dear = false;           // the victims would lose more than a preemption may cost
  bool hopeless = false;           // the job would not fit if all candidates left
  bool over_queue_limits = false;  // candidates are left out because of the limits of queues
  bool passed_over = false;        // candidates without GPUs were not looked at
  Timestamp reevaluate_at = Timestamp::never();  // time alone may add victims then
};
VictimsFound find_victims(const VictimSearch& search, JobId preemptor, SearchStats& work);

// Returns how many more gangs may be evicted now, by the limits per cycle (which has evicted `already`) and per hour.
std::size_t eviction_budget(const state::State& state, Timestamp now, std::size_t already);

// Returns when the running job began to run. Moves (sched/resize/consolidate.h) do not count: its minimum run time does
// not start anew.
Timestamp runs_since(const state::JobState& job);
// Returns true if the job was moved after that time.
bool has_moved_since(const state::JobState& job, Timestamp time);

// The minimum run time of a job after its start. It cannot be evicted as a whole before.
struct LeastRun {
  std::int64_t seconds = 0;
  QueueId terms_of;             // the queue whose terms say so; root: the cluster's
  bool after_eviction = false;  // because it was evicted the last time (cooldown)
};
LeastRun least_run(const state::State& state, const state::JobState& job);
inline std::int64_t least_run_s(const state::State& state, const state::JobState& job) {
  return least_run(state, job).seconds;
}

// Returns when the running job has run its minimum, which is longer for a job that was reclaimed or preempted the last
// time.
Timestamp may_be_stopped_from(const state::State& state, const state::JobState& job);

// Returns true if a search for victims could find any, now or after some time. Either a job of lower priority, or one
// that may come to a higher level, runs in the same queue; or the job, which counts at least `asked`, is inside a
// guarantee on its quota path; or scaled-up tasks may be taken.
bool may_evict_others(const state::State& state, const state::JobState& job, const Amounts& asked);

// Returns the work that evicting the job now would lose, in GPU-milliseconds since its last checkpoint; 0 if it saves
// on signal. A job without GPUs counts as one GPU.
std::int64_t loss_of_stopping(const state::RunningRow& row, Timestamp now);

}  // namespace berth::sched
