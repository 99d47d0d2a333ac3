#pragma once
// Waking: which lanes a cycle has to ask at all. A queue is represented, in the order of asking, by the first of its
// jobs that could start now or could claim victims; what can do neither sleeps until something that blocks it changes
// (state/wait_index.h). Because "could start now" is a question to the state as the cycle finds it, the answer is the
// same whether a lane was asleep or has just been probed again, and so are the decisions.

#include <utility>
#include <vector>

#include "base/timestamp.h"
#include "model/reason.h"
#include "sched/place/place.h"
#include "sched/requeue/cycle_cache.h"
#include "sched/requeue/verdicts.h"
#include "state/state.h"

namespace berth::sched {

// Probes every lane that is awake, or sleeps and may be helped by what has changed since, and puts to sleep what can
// neither start nor claim, those whose refusal cannot be told exactly until anything changes. Those that stay awake are
// added to the openings.
struct Probed {
  std::vector<std::pair<JobId, Reason>> refused;  // the first job of each lane that was put to sleep, and why
  std::uint64_t eq_classes = 0;
  std::uint64_t resumed = 0;  // lanes that were sent back to sleep without being probed
};
Probed probe_classes(state::State& state, Timestamp now, SearchStats& work, Verdicts& verdicts, CycleCache& cache);

// Whether lanes of the cohort lack nothing but places, and none of the nodes that have stirred them may hold one of
// their tasks now: then they would be refused again.
bool nodes_are_taken(const state::State& state, const state::WaitIndex::WaitGroup& wait_group);

// Whether a job of the leaf that may not claim when a cycle begins, or the next one of its lane, may do so before it
// ends; and whether the first of the lane may by now.
bool may_evict_later(const state::State& state, QueueId leaf);
bool may_evict_by_now(const state::State& state, const state::EquivalenceKey& eq_class);

}  // namespace berth::sched
