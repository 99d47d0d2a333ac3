#include "sched/order.h"

#include <algorithm>

#include "sched/backfill.h"
#include "sched/quota.h"

namespace berth::sched {

using state::QueueState;
using state::State;

Order::Order(const State& state, Timestamp now, Lanes lanes)
    : state_(state),
      now_(now),
      standings_(state.queues().size()),
      contests_(state.queues().size()),
      asked_(lanes),
      asked_below_(state.queues().size()) {
  if (asked_ == Lanes::kAll) asked_below_.assign(state.queues().size(), true);
  for (const auto& [lane, sleeper] : state.waits().awake()) {
    for (QueueId q = lane.queue; q.valid() && !asked_below_[q.index()]; q = state.queue(q).parent) {
      asked_below_[q.index()] = true;
    }
  }
}

bool Order::passes_over(const QueueState& leaf, std::uint64_t shape) const {
  return asked_ == Lanes::kAwake && state_.waits().sleeps({leaf.id, shape});
}

// In a strict queue nobody passes the first job that may be asked at all.
bool Order::head_sleeps(const QueueState& leaf) const {
  for (const state::PendingKey& key : leaf.pending) {
    const state::JobState& job = *state_.job(key.job);
    if (job.not_before <= now_ && !job.nomination) return passes_over(leaf, job.shape);
  }
  return false;
}

std::vector<Order::Lane>& Order::lanes_of(const QueueState& leaf) {
  const auto [found, fresh] = lanes_.try_emplace(leaf.id);
  std::vector<Lane>& lanes = found->second;
  if (!fresh) return lanes;
  if (leaf.policy == QueuePolicy::kStrict && head_sleeps(leaf)) return lanes;
  const auto add = [&](std::uint64_t shape, const std::set<state::PendingKey>& jobs) {
    const Amounts asked = least_amounts(state_, state_.job(jobs.begin()->job)->spec);
    lanes.push_back({shape, jobs.begin(), jobs.end(), asked, {}, 0});
  };
  if (asked_ == Lanes::kAll) {
    for (const auto& [shape, jobs] : leaf.lanes) add(shape, jobs);
    return lanes;
  }
  const auto& awake = state_.waits().awake();
  for (auto at = awake.lower_bound({leaf.id, 0}); at != awake.end() && at->first.queue == leaf.id; ++at) {
    add(at->first.shape, leaf.lanes.at(at->first.shape));
  }
  return lanes;
}

// For a hold that others of its lane have met. After so many that were looked at the rest is not.
bool Order::would_be_refused(Lane& lane, const state::JobState& job) {
  if (!lane.refused_length_s || job.start_hold) return false;
  return ++lane.looked_at > kLookedAtBehindHold || length_s(job) >= *lane.refused_length_s;
}

std::optional<Order::Candidate> Order::leaf_head(const QueueState& leaf) {
  std::vector<Lane>& lanes = lanes_of(leaf);
  std::optional<Candidate> best;
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    Lane& lane = lanes[i];
    while (lane.at != lane.end) {
      const state::JobState& job = *state_.job(lane.at->job);
      if (job.not_before <= now_ && !job.nomination && !would_be_refused(lane, job)) break;
      ++lane.at;  // too early, or a claimant, who is served before the others, or too long for a hold
    }
    if (lane.at != lane.end && (!best || *lane.at < best->key)) best = Candidate{lane.at->job, leaf.id, i, *lane.at};
  }
  return best;
}

const Amounts& Order::asked_by(const Candidate& candidate) const {
  return lanes_.at(candidate.leaf)[candidate.lane].asked;
}

Order::Rank Order::rank_of(QueueId id) {
  const QueueState& queue = state_.queue(id);
  const Amounts& asked = asked_by(*standings_[id.index()].candidate);
  Rank rank;
  rank.standing = would_be_within(state_, id, asked) ? 0 : (queue.weight == 0 ? 2 : 1);
  rank.share = dominant_share(state_, counted(id), queue.weight);
  return rank;
}

// A total order: every key has its own job.
bool Order::later(const Contender& a, const Contender& b) {
  if (a.rank.standing != b.rank.standing) return a.rank.standing > b.rank.standing;
  const int by_share = compare(a.rank.share, b.rank.share);
  return by_share != 0 ? by_share > 0 : state::precedes_elsewhere(b.key, a.key);
}

void Order::rank(Contest& contest) {
  const bool many = contest.unranked.size() > contest.heap.size();
  for (const QueueId id : contest.unranked) {
    Standing& standing = standings_[id.index()];
    contest.heap.push_back({rank_of(id), standing.candidate->key, id, standing.version});
    if (!many) std::push_heap(contest.heap.begin(), contest.heap.end(), later);
    standing.ranked = true;
    ++contest.ranked;
  }
  if (many) std::make_heap(contest.heap.begin(), contest.heap.end(), later);
  contest.unranked.clear();
}

std::optional<Order::Candidate> Order::best_child(const QueueState& queue) {
  Contest& contest = contests_[queue.id.index()];
  if (!contest.begun) contest.unranked = queue.children;
  contest.begun = true;
  std::erase_if(contest.unranked, [&](QueueId id) { return !head(id); });
  if (contest.ranked == 0) {
    if (contest.unranked.empty()) return std::nullopt;
    // The only one needs no comparison.
    if (contest.unranked.size() == 1) return standings_[contest.unranked.front().index()].candidate;
  }
  rank(contest);
  while (contest.heap.front().version != standings_[contest.heap.front().queue.index()].version) {
    std::pop_heap(contest.heap.begin(), contest.heap.end(), later);
    contest.heap.pop_back();
  }
  return standings_[contest.heap.front().queue.index()].candidate;
}

// The children's usage, rescaled to the least share of those that have somebody to ask. The others count in full what
// the next job takes most of.
SharedAmounts Order::counted_below(const QueueState& queue, const Candidate& next) {
  std::vector<Fraction> shares;
  shares.reserve(queue.children.size());
  std::optional<Fraction> least;
  for (const QueueId id : queue.children) {
    shares.push_back(dominant_share(state_, counted(id), state_.queue(id).weight));
    if (head(id) && (!least || shares.back() < *least)) least = shares.back();
  }
  const std::size_t most = most_asked(state_, asked_by(next));
  SharedAmounts sum{};
  for (std::size_t c = 0; c < shares.size(); ++c) {
    const Standing& child = standings_[queue.children[c].index()];
    SharedAmounts amounts = rescaled(*child.counted, shares[c], *least);
    if (!child.candidate) amounts[most] = (*child.counted)[most];
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += amounts[i];
  }
  return sum;
}

const std::optional<Order::Candidate>& Order::head(QueueId id) {
  Standing& standing = standings_[id.index()];
  if (!standing.known) {
    const QueueState& queue = state_.queue(id);
    if (queue.pending_below > 0 && asked_below_[id.index()])
      standing.candidate = queue.is_leaf() ? leaf_head(queue) : best_child(queue);
    standing.known = true;
  }
  return standing.candidate;
}

const SharedAmounts& Order::counted(QueueId id) {
  const std::optional<Candidate>& next = head(id);
  Standing& standing = standings_[id.index()];
  if (!standing.counted) {
    const QueueState& queue = state_.queue(id);
    standing.counted = queue.is_leaf() || !next ? shared_usage(state_, queue, now_) : counted_below(queue, *next);
  }
  return *standing.counted;
}

std::optional<Fraction> Order::share(QueueId queue) {
  if (!head(queue)) return std::nullopt;
  return rank_of(queue).share;
}

void Order::forget_path(QueueId leaf) {
  for (QueueId id = leaf; id.valid(); id = state_.queue(id).parent) {
    Standing& standing = standings_[id.index()];
    if (standing.ranked) {
      Contest& contest = contests_[state_.queue(id).parent.index()];
      --contest.ranked;
      contest.unranked.push_back(id);
    }
    const std::uint32_t version = standing.version + 1;
    standing = {};
    standing.version = version;
  }
}

std::optional<JobId> Order::first() {
  const std::optional<Candidate>& candidate = head(state_.root());
  return candidate ? std::optional(candidate->job) : std::nullopt;
}

std::optional<JobId> Order::next() {
  const std::optional<Candidate> candidate = head(state_.root());
  if (!candidate) return std::nullopt;
  ++lanes_.at(candidate->leaf)[candidate->lane].at;
  forget_path(candidate->leaf);
  return candidate->job;
}

std::vector<JobId> Order::rest() const {
  std::vector<JobId> rest;
  for (const auto& [leaf, lanes] : lanes_) {
    const bool strict = state_.queue(leaf).policy == QueuePolicy::kStrict;
    std::optional<state::PendingKey> head;
    for (const Lane& lane : lanes) {
      auto at = lane.at;
      const auto waits = [&](const state::PendingKey& key) {
        const state::JobState& job = *state_.job(key.job);
        return job.not_before <= now_ && !job.nomination;
      };
      while (at != lane.end && !waits(*at)) ++at;
      if (at == lane.end) continue;
      if (!strict) rest.push_back(at->job);
      if (!head || *at < *head) head = *at;
    }
    if (strict && head) rest.push_back(head->job);
  }
  return rest;
}

void Order::refuse(JobId id) {
  const state::JobState& job = *state_.job(id);
  const bool strict = state_.queue(job.queue).policy == QueuePolicy::kStrict;
  for (Lane& lane : lanes_.at(job.queue)) {
    if (strict || lane.shape == job.shape) lane.at = lane.end;
  }
  forget_path(job.queue);
}

void Order::refuse_as_long(JobId id) {
  const state::JobState& job = *state_.job(id);
  if (state_.queue(job.queue).policy == QueuePolicy::kStrict) return refuse(id);
  for (Lane& lane : lanes_.at(job.queue)) {
    if (lane.shape != job.shape) continue;
    lane.refused_length_s = std::min(length_s(job), lane.refused_length_s.value_or(kUnlimited));
    if (lane.looked_at > kLookedAtBehindHold) lane.at = lane.end;
  }
  forget_path(job.queue);
}

}  // namespace berth::sched
