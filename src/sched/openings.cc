#include "sched/openings.h"

#include "sched/preempt.h"
#include "sched/quota.h"

namespace berth::sched {

using state::JobState;
using state::LaneKey;
using state::State;

void Openings::add(const State& state, const LaneKey& lane, const JobState& job, ModelMask models) {
  if (job.spec.groups.size() != 1 || may_claim(state, job, least_amounts(state, job.spec))) return add_other();
  Answer& answer = answers_[place_question(state, job, models)];
  if (answer.lanes++ == 0) ++open_;
  lanes_.emplace(lane, &answer);
}

std::optional<Reason> Openings::refused(const PlaceQuestion& question) const {
  const auto found = answers_.find(question);
  return found == answers_.end() ? std::nullopt : found->second.refused;
}

std::optional<Reason> Openings::refused(const LaneKey& lane) const {
  const auto found = lanes_.find(lane);
  return found == lanes_.end() ? std::nullopt : found->second->refused;
}

void Openings::refuse(const PlaceQuestion& question, const Reason& why) {
  Answer& answer = answers_[question];
  if (answer.lanes > 0 && !answer.refused) --open_;
  answer.refused = why;
}

}  // namespace berth::sched
