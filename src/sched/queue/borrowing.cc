#include "sched/queue/borrowing.h"

#include "sched/queue/quota.h"
#include "sched/resize/elastic.h"

namespace berth::sched {

using state::JobState;
using state::State;
using state::Transaction;

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

bool borrows_by_burst(const State& state, const JobState& job, const Amounts& counts,
                      const std::vector<TaskPlacement>& placements) {
  if (!state.burst_amounts_of(job.spec, placements)) return false;
  for (QueueId q = job.queue; q != state.root(); q = state.queue(q).parent) {
    if (would_be_within(state, q, counts)) return true;
  }
  return false;
}

bool borrows_unlike_nominated(const State& state, const JobState& preemptor,
                              const std::vector<TaskPlacement>& placements) {
  const state::Nomination& nomination = *preemptor.nomination;
  return borrows_after_all(state, preemptor, nomination.amounts, placements) ||
         (!state.burst_amounts_of(preemptor.spec, nomination.placements) &&
          borrows_by_burst(state, preemptor, nomination.amounts, placements));
}

}  // namespace berth::sched
