#include "sched/blocking.h"

#include "sched/admit.h"

namespace berth::sched {

using state::JobState;
using state::PendingKey;
using state::QueueState;
using state::State;

namespace {

// The first job of the queue that may be asked now.
JobId strict_head(const State& state, const QueueState& leaf, Timestamp now) {
  for (const PendingKey& key : leaf.pending) {
    const JobState& job = *state.job(key.job);
    if (job.not_before <= now && !job.nomination) return key.job;
  }
  return JobId::none();
}

// Quota, then places.
std::optional<Reason> no_room(const State& state, const JobState& job, PlaceWork& work) {
  Reason why;
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

}  // namespace

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
  return no_room(state, job, work);
}

std::optional<ReasonCode> BlockingOfMany::operator()(const JobState& job) {
  if (const auto reason = gate(state_, job, now_)) return reason->code;
  const QueueState& leaf = state_.queue(job.queue);
  if (leaf.policy == QueuePolicy::kStrict) {
    const auto [head, fresh] = heads_.try_emplace(leaf.id);
    if (fresh) head->second = strict_head(state_, leaf, now_);
    const JobState* first = state_.job(head->second);
    if (first != nullptr && pending_key(*first) < pending_key(job)) return ReasonCode::kBehindHead;
  }
  const std::pair lane(job.queue, job.shape);
  if (const auto known = lanes_.find(lane); known != lanes_.end()) return known->second;
  if (lanes_.size() >= kMostLanes || work_.nodes_scored >= kMostNodes) return std::nullopt;
  const auto reason = no_room(state_, job, work_);
  return lanes_[lane] = reason ? std::optional(reason->code) : std::nullopt;
}

}  // namespace berth::sched
