#include "sched/requeue/verdicts.h"

#include "sched/queue/quota.h"

namespace berth::sched {

namespace {

bool within_on_the_way(const state::State& state, QueueId queue, const Amounts& asked) {
  for (QueueId q = queue; q != state.root(); q = state.queue(q).parent) {
    if (would_be_within(state, q, asked)) return true;
  }
  return false;
}

}  // namespace

Verdicts::Id Verdicts::id_of(const state::JobState& job, ModelMask models) {
  const std::uint32_t asker = state_.quota_path_of(job.queue).asker;
  return ids_.try_emplace({job.shape, models, asker}, static_cast<Id>(ids_.size())).first->second;
}

Verdicts::Case& Verdicts::case_of(const CaseKey& key, JobId id) {
  const auto [found, fresh] = cases_.try_emplace(key);
  Case& known = found->second;
  if (!fresh) return known;
  const state::JobState& job = *state_.job(id);
  known.rules_from = state_.quota_path_of(job.queue).rules_from;
  const auto [least, first] = least_.try_emplace(job.shape);
  if (first) least->second = least_amounts(state_, job.spec);
  known.least = least->second;
  known.admission = admit(state_, job, known.least);
  if (known.admission.models != 0) known.question = id_of(job, known.admission.models);
  known.alike = job.spec.groups.size() == 1 && job.spec.affinity.empty();
  known.within = within_on_the_way(state_, known.rules_from, known.least);
  return known;
}

}  // namespace berth::sched
