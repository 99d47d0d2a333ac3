#pragma once
// Who must leave so that a claimant fits. Reclaim takes back what gangs of other branches have borrowed, for a claimant
// that lies within its guarantee; preemption takes from lower priorities of the same queue. Nothing is evicted without
// proof, on a trial, that the claimant then fits; the set is minimal: with any victim left out, the claimant would not
// fit.
//
// Shrinking comes first. What an elastic gang has beyond its least counts is given back before anybody is evicted, as
// few tasks as do, the last ones first, and without regard to the minimum run time, because no work ends. Reclaim takes
// of it what is borrowed; a gang whose least part is within stays, whatever it has grown by. Preemption takes it also
// for a claimant of the same priority: what somebody needs to run at all goes before what makes others faster.
//
// Termination: for fixed demand and capacity each reclaim moves a charge from borrowed to within at some queue and
// never the reverse, and each preemption replaces a charge by one of higher priority in the same queue. The potential
// is the pair (sum of within usage over the tree, then the multiset of running priorities), which strictly rises and is
// bounded. Giving back replaces growth by the least part of a gang; growth evicts nobody, so the number of least parts
// that run rises with each such step, and is bounded, too.

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

// Whether a search for victims could find any at all: somebody of lower priority runs in the same queue, or the job,
// which counts `asked` at least, lies inside a guarantee on its way to the root.
bool may_claim(const state::State& state, const state::JobState& job, const Amounts& asked);

// GPU-milliseconds of work that stopping the job now would lose: since its last checkpoint, or nothing if it saves on
// signal.
std::int64_t loss_of_stopping(const state::JobState& job, Timestamp now);

}  // namespace berth::sched
