#include "sched/order.h"

#include "sched/quota.h"

namespace berth::sched {

using state::QueueState;
using state::State;

Order::Order(const State& state, Timestamp now) : state_(state), now_(now) {}

void Order::close(QueueId leaf) { exhausted_.insert(leaf); }

std::optional<Order::Candidate> Order::leaf_head(const QueueState& leaf) {
  auto [cursor, fresh] = cursors_.try_emplace(leaf.id, leaf.pending.begin());
  for (auto& at = cursor->second; at != leaf.pending.end(); ++at) {
    const state::JobState& job = *state_.job(at->job);
    if (job.not_before > now_ || job.nomination) continue;  // too early, or served before the others
    return Candidate{at->job, at->negated_priority, at->submitted};
  }
  exhausted_.insert(leaf.id);
  return std::nullopt;
}

std::optional<Order::Candidate> Order::head(QueueId id) {
  const QueueState& queue = state_.queue(id);
  if (queue.pending_below == 0 || exhausted_.contains(id)) return std::nullopt;
  if (queue.is_leaf()) return leaf_head(queue);

  struct Rank {
    int standing = 0;  // 0 within, 1 borrows, 2 borrows with weight 0
    Fraction share;
  };
  std::optional<Candidate> best;
  Rank best_rank;
  for (const QueueId child_id : queue.children) {
    const auto candidate = head(child_id);
    if (!candidate) continue;
    const QueueState& child = state_.queue(child_id);
    const Amounts asked = least_amounts(state_, state_.job(candidate->job)->spec);
    Rank rank;
    rank.standing = would_be_within(state_, child_id, asked) ? 0 : (child.weight == 0 ? 2 : 1);
    rank.share = dominant_share(state_, child);
    bool better = !best.has_value();
    if (!better) {
      const int by_share = compare(rank.share, best_rank.share);
      if (rank.standing != best_rank.standing) {
        better = rank.standing < best_rank.standing;
      } else if (by_share != 0) {
        better = by_share < 0;
      } else {
        better = std::tie(candidate->negated_priority, candidate->submitted, candidate->job) <
                 std::tie(best->negated_priority, best->submitted, best->job);
      }
    }
    if (better) {
      best = candidate;
      best_rank = rank;
    }
  }
  if (!best) exhausted_.insert(id);
  return best;
}

std::optional<JobId> Order::next() {
  const auto candidate = head(state_.root());
  if (!candidate) return std::nullopt;
  ++cursors_.at(state_.job(candidate->job)->queue);
  return candidate->job;
}

}  // namespace berth::sched
