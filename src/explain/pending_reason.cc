#include "explain/pending_reason.h"

#include "sched/queue/admit.h"
#include "sched/start.h"
#include "state/transaction.h"

namespace berth::explain {

using namespace sched;

using state::JobState;
using state::PendingKey;
using state::QueueState;
using state::State;

namespace {

// The first job of the queue that may be tried now.
JobId strict_head(const State& state, const QueueState& leaf, Timestamp now) {
  for (const PendingKey& key : leaf.pending) {
    const JobState& job = *state.job(key.job);
    if (job.not_before <= now && !job.nomination) return key.job;
  }
  return JobId::none();
}

// The memo of refuses_start for a job of a class whose answer is known. Places beside backfill reservations are not
// looked for: a job that fits and is still pending waits for one, if its places are reserved.
struct ClassMemo {
  const StartAnswer& known;

  const Reason* refusal(const StartQuestion&) const { return known ? nullptr : &known.why; }
  std::span<const TaskPlacement> places() const { return *known.placements; }
  static bool fits_beside(const StartQuestion&, std::span<const JobId>) { return false; }
};

// Returns what quota refuses at the places where the job would fit, if the quota of some GPU models keeps it from them.
std::optional<Reason> quota_of_models(const State& state, const JobState& job, SearchStats& work) {
  if (admits_all_models(state, job)) return std::nullopt;
  JobState least = job;
  for (TaskGroup& group : least.spec.groups) group.count = group.least();
  const auto placements = try_place(state, least, kAllModels, work);
  return placements ? refuses(state, least, *placements) : std::nullopt;
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

std::optional<Reason> pending_reason(State& state, const JobState& job, Timestamp now, SearchStats& work) {
  if (auto reason = gate(state, job, now)) return reason;
  if (const JobId head = strict_head_before(state, job, now); head.valid()) {
    Reason why;
    why.code = ReasonCode::kBehindQueueHead;
    why.job = head;
    return why;
  }
  state::Transaction transaction(state);
  const StartAnswer answer = try_start(transaction, {state, job, now, work});
  if (answer) return std::nullopt;
  return lacks_places(answer.why.code) ? quota_of_models(state, job, work).value_or(answer.why) : answer.why;
}

std::optional<ReasonCode> PendingReasons::operator()(const JobState& job) {
  if (const auto reason = gate(state_, job, now_)) return reason->code;
  const QueueState& leaf = state_.queue(job.queue);
  if (leaf.policy == QueuePolicy::kStrict) {
    const auto [head, fresh] = heads_.try_emplace(leaf.id);
    if (fresh) head->second = strict_head(state_, leaf, now_);
    const JobState* first = state_.job(head->second);
    if (first != nullptr && pending_key(*first) < pending_key(job)) return ReasonCode::kBehindQueueHead;
  }
  const std::pair eq_class(job.queue, job.shape);
  if (!eq_classes_.contains(eq_class)) {
    if (eq_classes_.size() >= most_classes_ || work_.nodes_scored >= kMostNodes) return std::nullopt;
    StartAnswer answer = find_places({state_, job, now_, work_});
    if (!answer && lacks_places(answer.why.code)) {
      if (auto quota = quota_of_models(state_, job, work_)) answer.why = std::move(*quota);
    }
    eq_classes_[eq_class] = std::move(answer);
  }
  ClassMemo memo{eq_classes_.at(eq_class)};
  const StartRefusal refusal = refuses_start({state_, job, now_, work_}, memo);
  if (refusal.why != nullptr) return refusal.why->code;
  return refusal ? std::optional(ReasonCode::kWouldDelayReservation) : std::nullopt;
}

}  // namespace berth::explain
