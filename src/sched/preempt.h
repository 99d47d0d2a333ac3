#pragma once
// Who must leave so that a claimant fits. Reclaim takes back what gangs of other branches have borrowed, for a claimant
// that lies within its guarantee; preemption takes from lower priorities of the same queue, and where the queue orders
// its jobs by attained service (state/attained_service.h), from higher levels of the same priority, if what they have
// done is saved when they are asked to leave. Nothing is evicted without
// proof, on a trial, that the claimant then fits; the set is minimal: with any victim left out, the claimant would not
// fit.
//
// Shrinking comes first. What an elastic gang has beyond its least counts is given back before anybody is evicted, as
// few tasks as do, the last ones first, and without regard to the minimum run time, because no work ends. Reclaim takes
// of it what is borrowed; a gang whose least part is within stays, whatever it has grown by. Preemption takes it also
// for a claimant of the same priority: what somebody needs to run at all goes before what makes others faster.
//
// Termination: for fixed demand and capacity each reclaim moves a charge from borrowed to within at some queue and
// never the reverse, and each preemption replaces charges by one of higher priority, or of the same and a lower level,
// in the same queue. The potential is the pair (sum of within usage over the tree, then the multiset of running
// (priority, -level), of which one larger outweighs any number of smaller), which strictly rises and is bounded. Levels
// of what runs change with time, but each job's rises at most once per threshold and falls once, when it is promoted;
// a promoted job stands on the lowest, so nobody stops it by its level. So between two exits or submissions there are
// finitely many stops, and who waits behind others for ever is promoted. Giving back replaces growth by the least part
// of a gang; growth evicts nobody, so the number of least parts that run rises with each such step, and is bounded,
// too.

#include <optional>
#include <set>

#include "base/timestamp.h"
#include "model/plan.h"
#include "sched/place.h"
#include "state/state.h"
#include "state/trial.h"

namespace berth::sched {

struct VictimSearch {
  state::State& state;
  Timestamp now;
  const std::set<JobId>& spoken_for;  // already victims in this cycle
  std::size_t budget;                 // at most so many victims
};

// The eviction that makes the waiting job fit, or nothing.
std::optional<EvictDecision> find_victims(const VictimSearch& search, JobId claimant, PlaceWork& work);

// Whether a search for victims could find any at all, now or when time has passed: somebody of lower priority, or who
// may come to stand on a higher level, runs in the same queue, or the job, which counts `asked` at least, lies inside a
// guarantee on its way to the root.
bool may_claim(const state::State& state, const state::JobState& job, const Amounts& asked);

// GPU-milliseconds of work that stopping the job now would lose: since its last checkpoint, or nothing if it saves on
// signal. Without GPUs it counts as one.
std::int64_t loss_of_stopping(const state::JobState& job, Timestamp now);

}  // namespace berth::sched
