#include "sched/questions.h"

#include "sched/place.h"
#include "sched/quota.h"

namespace berth::sched {

std::uint32_t Questions::asker_of(QueueId queue) {
  std::uint32_t& asker = askers_[queue.index()];
  if (asker != kUnknown) return asker;
  Asker full{state_.queue(queue).trust_domain, {}};
  for (std::uint32_t i = 0; i < state_.pools().size(); ++i) full.second.push_back(state_.is_open_to(queue, i));
  asker = known_askers_.try_emplace(std::move(full), static_cast<std::uint32_t>(known_askers_.size())).first->second;
  return asker;
}

Questions::Id Questions::id_of(const state::JobState& job, ModelMask models) {
  return ids_.try_emplace({job.shape, models, asker_of(job.queue)}, static_cast<Id>(ids_.size())).first->second;
}

const Amounts& Questions::least(const state::JobState& job) {
  const auto [found, fresh] = least_.try_emplace(job.shape);
  if (fresh) found->second = least_amounts(state_, job.spec);
  return found->second;
}

}  // namespace berth::sched
