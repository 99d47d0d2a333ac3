#include "sched/blocking.h"

#include "sched/admit.h"

namespace berth::sched {

using state::JobState;
using state::PendingKey;
using state::QueueState;
using state::State;

JobId strict_head_before(const State& state, const JobState& job, Timestamp now) {
  const QueueState& leaf = state.queue(job.queue);
  if (leaf.policy != QueuePolicy::kStrict) return JobId::none();
  const PendingKey own = pending_key(job);
  for (const PendingKey& key : leaf.pending) {
    if (own < key) break;
    const JobState& other = *state.job(key.job);
    if (key.job != job.id && other.not_before <= now && !other.nomination) return key.job;
  }
  return JobId::none();
}

std::optional<Reason> blocking(const State& state, const JobState& job, Timestamp now, PlaceWork& work) {
  if (auto reason = gate(state, job, now)) return reason;
  Reason why;
  why.job = strict_head_before(state, job, now);
  if (why.job.valid()) {
    why.code = ReasonCode::kBehindHead;
    return why;
  }
  const Admission admission = admit(state, job);
  if (admission.models == 0) return admission.reason;
  auto placements = place(state, job, admission.models, work, why);
  if (!placements) return why;
  const bool allowed = trim_until(job.spec, *placements, [&](const std::vector<TaskPlacement>& rest) {
    const auto reason = refuses(state, job, rest);
    if (reason) why = *reason;
    return !reason;
  });
  return allowed ? std::nullopt : std::optional(why);
}

}  // namespace berth::sched
