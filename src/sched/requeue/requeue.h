#pragma once
// Requeue: which equivalence classes a cycle has to evaluate at all. In the order a queue is represented by its first
// job that could start now or could evict victims. A class that can do neither is parked until something that blocks it
// changes (state/wait_index.h). "Could start now" is asked of the state as the cycle finds it. So the answer, and every
// decision, is the same whether a class stayed parked or has just been probed.

#include <utility>
#include <vector>

#include "base/timestamp.h"
#include "model/reason.h"
#include "sched/place/place.h"
#include "sched/requeue/cycle_cache.h"
#include "sched/requeue/verdicts.h"
#include "state/state.h"

namespace berth::sched {

// Probes every class that is active, and every parked class that may be helped by what has changed since. Classes that
// can neither start nor evict are parked. If the end of their refusal cannot be told exactly, they are parked until
// anything changes. Classes that stay active are added to `cache`.
struct Probed {
  std::vector<std::pair<JobId, Reason>> refused;  // first job of each class that was parked, and why
  std::uint64_t eq_classes = 0;
  std::uint64_t resumed = 0;  // signalled classes that were parked again without a probe
};
Probed probe_classes(state::State& state, Timestamp now, SearchStats& work, Verdicts& verdicts, CycleCache& cache);

// Returns true if the classes of the wait group lack nothing but places, and none of the nodes that signalled them can
// hold one of their tasks now. Then they would be refused again.
bool nodes_are_taken(const state::State& state, const state::WaitIndex::WaitGroup& wait_group);

// may_evict_later returns true if a class of the leaf that may not evict when the cycle begins could do so before it
// ends, by its first job or the next one. may_evict_by_now returns true if the first job of the class may evict now.
bool may_evict_later(const state::State& state, QueueId leaf);
bool may_evict_by_now(const state::State& state, const state::EquivalenceKey& eq_class);

}  // namespace berth::sched
