#include "sim/simulate/breach.h"

#include <algorithm>
#include <vector>

#include "sched/queue/quota.h"
#include "sched/start.h"
#include "state/transaction.h"

namespace berth::sim {

namespace {

using state::JobState;
using state::QueueState;
using state::State;
using state::Transaction;

bool is_below(const State& state, QueueId queue, QueueId top) {
  while (queue.valid() && queue != top) queue = state.queue(queue).parent;
  return queue.valid();
}

// Adds the first pending job of each equivalence class and leaf below the queue that would be within its guarantee
// beside all that runs or is nominated there.
void add_entitled(const State& state, QueueId id, const QueueState& top, std::vector<JobId>& jobs) {
  const QueueState& queue = state.queue(id);
  for (const QueueId child : queue.children) add_entitled(state, child, top, jobs);
  for (const auto& [shape, eq_class] : queue.eq_classes) {
    const auto first = std::find_if(eq_class.begin(), eq_class.end(),
                                    [&](const state::PendingKey& key) { return !state.job(key.job)->nomination; });
    if (first == eq_class.end()) continue;
    const Amounts asked = sched::least_amounts(state, state.job(first->job)->spec);
    if (inside_guarantee(top.usage + top.nominated, asked, top.guaranteed)) jobs.push_back(first->job);
  }
}

// Removes all jobs that were asked to leave completely.
void remove_leaving(const State& state, Transaction& transaction) {
  const std::vector<JobId> running(state.running().begin(), state.running().end());
  for (const JobId id : running) {
    if (state.job(id)->attempt->stopping()) transaction.remove(id);
  }
}

// Removes all jobs that borrow on another side of the tree and were not asked to leave.
void remove_borrowers(const State& state, QueueId queue, Transaction& transaction) {
  const std::vector<JobId> running(state.running().begin(), state.running().end());
  for (const JobId id : running) {
    const JobState& job = *state.job(id);
    const QueueId theirs = sched::below_common_ancestor(state, queue, job.queue).victim;
    if (!theirs.valid() || job.attempt->stopping()) continue;
    if ((job.attempt->charges.front().within >> state.queue(theirs).depth & 1U) == 0) transaction.remove(id);
  }
}

enum class Service { kOwed, kComes, kImpossible };

// If the job fits once the leaving jobs have left, no eviction is needed: it starts then.
Service service_of(State& state, QueueId queue, JobId id) {
  sched::SearchStats work;
  const sched::StartQuestion question{state, *state.job(id), state.asked_at(), work};
  Transaction transaction(state);
  remove_leaving(state, transaction);
  if (sched::find_places(question)) return Service::kComes;
  remove_borrowers(state, queue, transaction);
  return sched::find_places(question) ? Service::kOwed : Service::kImpossible;
}

bool any_nomination_of(const State& state, QueueId queue) {
  for (const JobId id : state.nominated()) {
    if (is_below(state, state.job(id)->queue, queue)) return true;
  }
  return false;
}

}  // namespace

Breach breach_of(State& state, QueueId queue) {
  std::vector<JobId> entitled;
  add_entitled(state, queue, state.queue(queue), entitled);
  bool comes = any_nomination_of(state, queue);
  for (const JobId id : entitled) {
    const Service service = service_of(state, queue, id);
    if (service == Service::kOwed) return Breach::kUnserved;
    comes = comes || service == Service::kComes;
  }
  return comes ? Breach::kLeaving : Breach::kNoPlace;
}

}  // namespace berth::sim
