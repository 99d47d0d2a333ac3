#include "sched/order.h"

#include <algorithm>
#include <utility>

#include "sched/backfill.h"
#include "sched/quota.h"

namespace berth::sched {

using state::QueueState;
using state::State;

Order::Order(const State& state, Timestamp now)
    : state_(state),
      now_(now),
      leaves_(state.queues().size()),
      standings_(state.queues().size()),
      contests_(state.queues().size()),
      all_(true),
      asked_below_(state.queues().size(), true) {}

Order::Order(const State& state, Timestamp now, std::span<const AskedLane> awake)
    : state_(state),
      now_(now),
      leaves_(state.queues().size()),
      standings_(state.queues().size()),
      contests_(state.queues().size()),
      awake_(awake),
      first_of_(state.queues().size()),
      asked_below_(state.queues().size()) {
  lanes_.reserve(awake.size());
  for (std::size_t i = 0; i < awake.size(); ++i) {
    const QueueId leaf = awake[i].key.queue;
    if (i > 0 && awake[i - 1].key.queue == leaf) continue;
    first_of_[leaf.index()] = static_cast<std::uint32_t>(i);
    for (QueueId q = leaf; q.valid() && !asked_below_[q.index()]; q = state.queue(q).parent) {
      asked_below_[q.index()] = true;
    }
  }
}

// It may be asked at all: it is not too early, nor a claimant, who is served before the others.
bool Order::waits(const state::PendingKey& key) const {
  const state::JobState& job = *state_.job(key.job);
  return job.not_before <= now_ && !job.nomination;
}

// In a strict queue nobody passes the first job that may be asked at all.
bool Order::head_sleeps(const QueueState& leaf) const {
  for (const state::PendingKey& key : leaf.pending) {
    if (waits(key)) return !all_ && state_.waits().sleeps({leaf.id, state_.job(key.job)->shape});
  }
  return false;
}

std::span<Order::Lane> Order::lanes_of(const QueueState& queue) {
  Leaf& leaf = leaves_[queue.id.index()];
  if (!std::exchange(leaf.begun, true)) {
    leaf.begin = lanes_.size();
    add_lanes_of(queue);
    leaf.end = lanes_.size();
  }
  return std::span(lanes_).subspan(leaf.begin, leaf.end - leaf.begin);
}

void Order::add_lanes_of(const QueueState& leaf) {
  if (leaf.policy == QueuePolicy::kStrict && head_sleeps(leaf)) return;
  for (const auto& [shape, jobs] : leaf.lanes) {
    if (!all_) break;
    Lane& lane = lanes_.emplace_back();
    lane.shape = shape;
    lane.at = *jobs.begin();
  }
  for (std::size_t i = all_ ? 0 : first_of_[leaf.id.index()]; i < awake_.size() && awake_[i].key.queue == leaf.id;
       ++i) {
    Lane& lane = lanes_.emplace_back();
    lane.shape = awake_[i].key.shape;
    lane.at = awake_[i].first;
    lane.least = awake_[i].least;
    lane.eligible = true;
  }
}

// To the job that follows its next one.
void Order::advance(const QueueState& leaf, Lane& lane) const {
  const Lane::Jobs& jobs = leaf.lanes.at(lane.shape);
  const auto after = jobs.upper_bound(lane.at);
  lane.over = after == jobs.end();
  lane.eligible = lane.taken = lane.borrows = lane.preferred = false;
  if (!lane.over) lane.at = *after;
}

// For a hold that others of its lane have met. After so many that were looked at the rest is not.
bool Order::would_be_refused(Lane& lane, const state::JobState& job) {
  if (!lane.refused_length_s || job.start_hold) return false;
  return ++lane.looked_at > kLookedAtBehindHold || length_s(job) >= *lane.refused_length_s;
}

bool Order::ready(const QueueState& leaf, Lane& lane) const {
  while (!lane.over) {
    const bool known = lane.eligible && !lane.refused_length_s;
    if (!lane.taken && (known || (waits(lane.at) && !would_be_refused(lane, *state_.job(lane.at.job))))) return true;
    advance(leaf, lane);  // too early, or a claimant, or too long for a hold
  }
  return false;
}

std::optional<Order::Candidate> Order::leaf_head(const QueueState& leaf) {
  std::optional<Candidate> best;
  for (Lane& lane : lanes_of(leaf)) {
    if (ready(leaf, lane) && (!best || lane.at < best->key))
      best = Candidate{lane.at.job, leaf.id, static_cast<std::size_t>(&lane - lanes_.data()), lane.at};
  }
  return best;
}

const Amounts& Order::asked_by(const Candidate& candidate) {
  Lane& lane = lanes_[candidate.lane];
  if (lane.least == nullptr)
    lane.least = &own_least_.emplace_back(least_amounts(state_, state_.job(candidate.job)->spec));
  return *lane.least;
}

Order::Rank Order::rank_of(QueueId id) {
  const QueueState& queue = state_.queue(id);
  const Amounts& asked = asked_by(*standings_[id.index()].candidate);
  const Candidate& candidate = *standings_[id.index()].candidate;
  Rank rank;
  const bool within = !lanes_[candidate.lane].borrows && ranks_within(state_, id, candidate.leaf, asked);
  rank.standing = within ? 0 : (queue.weight == 0 ? 2 : 1);
  rank.share = counted(id).share;
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
  std::optional<Fraction> least;
  for (const QueueId id : queue.children) {
    const Fraction& share = counted(id).share;
    if (head(id) && (!least || share < *least)) least = share;
  }
  const std::size_t most = most_asked(state_, asked_by(next));
  SharedAmounts sum{};
  for (const QueueId id : queue.children) {
    Standing& child = standings_[id.index()];
    if (child.rescaled_to.numerator != least->numerator || child.rescaled_to.denominator != least->denominator) {
      child.rescaled_to = *least;
      child.rescaled = rescaled(child.counted->amounts, child.counted->share, *least);
    }
    for (std::size_t i = 0; i < sum.size(); ++i)
      sum[i] += i == most && !child.candidate ? child.counted->amounts[i] : child.rescaled[i];
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

const Order::Counted& Order::counted(QueueId id) {
  const std::optional<Candidate>& next = head(id);
  Standing& standing = standings_[id.index()];
  if (!standing.counted) {
    const QueueState& queue = state_.queue(id);
    const SharedAmounts amounts =
        queue.is_leaf() || !next ? shared_usage(state_, queue, now_) : counted_below(queue, *next);
    standing.counted = Counted{amounts, dominant_share(state_, amounts, queue.weight)};
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
    if (!standing.known) continue;  // forgotten already
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

std::optional<JobId> Order::first() { return first_of(state_.root()); }

std::optional<JobId> Order::first_of(QueueId queue) {
  const std::optional<Candidate>& candidate = head(queue);
  return candidate ? std::optional(candidate->job) : std::nullopt;
}

std::optional<JobId> Order::next() { return give(owner_ ? std::exchange(owner_, std::nullopt) : head(state_.root())); }

std::optional<JobId> Order::next_of(QueueId leaf) {
  return give(owner_ ? std::exchange(owner_, std::nullopt) : leaf_head(state_.queue(leaf)));
}

std::optional<JobId> Order::give(const std::optional<Candidate>& candidate) {
  last_ = candidate;
  if (!last_) return std::nullopt;
  lanes_[last_->lane].taken = true;
  forget_path(last_->leaf);
  return last_->job;
}

std::vector<JobId> Order::rest() const {
  std::vector<JobId> rest;
  for (const QueueState& queue : state_.queues()) {
    const Leaf& leaf = leaves_[queue.id.index()];
    const bool strict = queue.policy == QueuePolicy::kStrict;
    std::optional<state::PendingKey> head;
    for (Lane lane : std::span(lanes_).subspan(leaf.begin, leaf.end - leaf.begin)) {
      while (!lane.over && (lane.taken || !waits(lane.at))) advance(queue, lane);
      if (lane.over) continue;
      if (!strict) rest.push_back(lane.at.job);
      if (!head || lane.at < *head) head = lane.at;
    }
    if (strict && head) rest.push_back(head->job);
  }
  return rest;
}

void Order::refuse() {
  const QueueState& leaf = state_.queue(last_->leaf);
  lanes_[last_->lane].over = true;
  if (leaf.policy == QueuePolicy::kStrict) {
    for (Lane& lane : lanes_of(leaf)) lane.over = true;
  }
  forget_path(last_->leaf);
}

void Order::ask_as(const Amounts& counts) {
  Lane& lane = lanes_[last_->lane];
  lane.least = &own_least_.emplace_back(counts);
  lane.taken = false;
  forget_path(last_->leaf);
}

void Order::ask_as_borrowing() {
  Lane& lane = lanes_[last_->lane];
  lane.borrows = true;
  lane.taken = false;
  forget_path(last_->leaf);
}

void Order::list_owners() {
  owners_.emplace();
  for (std::size_t i = 0; i < awake_.size(); ++i) {
    const QueueId leaf = awake_[i].key.queue;
    for (QueueId q = state_.standpoint_of(leaf).rules_from; q != state_.root(); q = state_.queue(q).parent) {
      if (!ranks_within(state_, q, leaf, *awake_[i].least)) continue;
      owners_->push_back(i);
      break;
    }
  }
}

// The next job of an awake lane, if it could reclaim from one of the other queue that counts so much. Who borrows at
// the places that he found may still claim others.
std::optional<Order::Candidate> Order::owner_among(std::size_t place, QueueId borrower, const Amounts& counts,
                                                   const Reclaims& reclaims) {
  const QueueId leaf = awake_[place].key.queue;
  const QueueState& queue = state_.queue(leaf);
  const std::span<Lane> lanes = lanes_of(queue);
  if (lanes.empty()) return std::nullopt;  // a strict queue whose head sleeps
  Lane& lane = lanes[place - first_of_[leaf.index()]];
  if (!ready(queue, lane) || lane.preferred) return std::nullopt;
  const Amounts& least = *awake_[place].least;
  if (!could_reclaim(state_, leaf, least, borrower, counts)) return std::nullopt;
  const bool found_others = lane.borrows || lane.least != &least;
  if (found_others && !reclaims(lane.at.job)) return std::nullopt;
  Candidate next{lane.at.job, leaf, static_cast<std::size_t>(&lane - lanes_.data()), lane.at};
  if (queue.policy == QueuePolicy::kStrict && leaf_head(queue)->job != next.job) return std::nullopt;
  // Its queue has the turn; in it, who is of higher priority goes before.
  if (const auto first = leaf_head(queue); first->key.negated_priority < next.key.negated_priority) next = *first;
  return lanes_[next.lane].preferred ? std::nullopt : std::optional(next);
}

bool Order::yields_to_owner(const Reclaims& reclaims) {
  if (!owners_) list_owners();
  const Amounts counts = counts_of_last();
  for (const std::size_t place : *owners_) {
    if (awake_[place].key.queue == last_->leaf) continue;
    const auto owner = owner_among(place, last_->leaf, counts, reclaims);
    if (owner && (!owner_ || state::precedes_elsewhere(owner->key, owner_->key))) owner_ = owner;
  }
  if (!owner_) return false;
  lanes_[owner_->lane].preferred = true;
  lanes_[last_->lane].taken = false;
  forget_path(last_->leaf);
  return true;
}

void Order::refuse_as_long() {
  if (state_.queue(last_->leaf).policy == QueuePolicy::kStrict) return refuse();
  Lane& lane = lanes_[last_->lane];
  lane.refused_length_s = std::min(length_s(*state_.job(last_->job)), lane.refused_length_s.value_or(kUnlimited));
  lane.over = lane.over || lane.looked_at > kLookedAtBehindHold;
  forget_path(last_->leaf);
}

}  // namespace berth::sched
