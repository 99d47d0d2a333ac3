#include "sched/queue/order.h"

#include <algorithm>
#include <utility>

#include "sched/backfill/backfill.h"
#include "sched/queue/quota.h"

namespace berth::sched {

using state::QueueState;
using state::State;

Order::Order(const State& state, Timestamp now)
    : state_(state),
      now_(now),
      leaves_(state.queues().size()),
      standings_(state.queues().size()),
      sibling_heaps_(state.queues().size()),
      all_(true),
      asked_below_(state.queues().size(), true) {}

Order::Order(const State& state, Timestamp now, std::span<const EvaluatedClass> active)
    : state_(state),
      now_(now),
      leaves_(state.queues().size()),
      standings_(state.queues().size()),
      sibling_heaps_(state.queues().size()),
      active_(active),
      first_of_(state.queues().size()),
      asked_below_(state.queues().size()) {
  eq_classes_.reserve(active.size());
  for (std::size_t i = 0; i < active.size(); ++i) {
    const QueueId leaf = active[i].key.queue;
    if (i > 0 && active[i - 1].key.queue == leaf) continue;
    first_of_[leaf.index()] = static_cast<std::uint32_t>(i);
    for (QueueId q = leaf; q.valid() && !asked_below_[q.index()]; q = state.queue(q).parent) {
      asked_below_[q.index()] = true;
    }
  }
}

// A job may be evaluated if its earliest start has come and it is not nominated: nominated jobs are served before the
// others.
bool Order::waits(const state::PendingKey& key) const {
  const state::JobState& job = *state_.job(key.job);
  return job.not_before <= now_ && !job.nomination;
}

// Returns the first job of the parked classes that could be evaluated. In a strict queue no job behind it starts,
// whatever starts before it: a job that was released, say, or one of higher priority.
std::optional<state::PendingKey> Order::first_parked(const QueueState& leaf) const {
  std::optional<state::PendingKey> first;
  for (const auto& [shape, jobs] : leaf.eq_classes) {
    if (!state_.waits().is_parked({leaf.id, shape})) continue;
    for (const state::PendingKey& key : jobs) {
      if (first && *first < key) break;
      if (!waits(key)) continue;
      first = key;
      break;
    }
  }
  return first;
}

bool Order::is_blocked(const QueueState& leaf, const state::PendingKey& key) const {
  const std::optional<state::PendingKey>& from = leaves_[leaf.id.index()].blocked_from;
  return from && *from < key;
}

std::span<Order::EquivalenceClass> Order::eq_classes_of(const QueueState& queue) {
  Leaf& leaf = leaves_[queue.id.index()];
  if (!std::exchange(leaf.begun, true)) {
    leaf.begin = eq_classes_.size();
    if (!all_ && queue.policy == QueuePolicy::kStrict) leaf.blocked_from = first_parked(queue);
    add_classes_of(queue);
    leaf.end = eq_classes_.size();
  }
  return std::span(eq_classes_).subspan(leaf.begin, leaf.end - leaf.begin);
}

void Order::add_classes_of(const QueueState& leaf) {
  for (const auto& [shape, jobs] : leaf.eq_classes) {
    if (!all_) break;
    EquivalenceClass& eq_class = eq_classes_.emplace_back();
    eq_class.shape = shape;
    eq_class.at = *jobs.begin();
  }
  for (std::size_t i = all_ ? 0 : first_of_[leaf.id.index()]; i < active_.size() && active_[i].key.queue == leaf.id;
       ++i) {
    EquivalenceClass& eq_class = eq_classes_.emplace_back();
    eq_class.shape = active_[i].key.shape;
    eq_class.at = active_[i].first;
    eq_class.least = active_[i].least;
    eq_class.eligible = true;
  }
}

// Moves the class on to the job after its next one.
void Order::advance(const QueueState& leaf, EquivalenceClass& eq_class) const {
  const EquivalenceClass::Jobs& jobs = leaf.eq_classes.at(eq_class.shape);
  const auto after = jobs.upper_bound(eq_class.at);
  eq_class.over = after == jobs.end();
  eq_class.eligible = eq_class.taken = eq_class.borrows = eq_class.preferred = false;
  if (!eq_class.over) eq_class.at = *after;
}

// Returns true if the job need not be evaluated: a backfill reservation refused a job of its class whose expected run
// time was not longer than this job's. After kLookedAtBehindReservation comparisons in the class, further jobs are
// skipped without one. A job that owns a reservation is always evaluated.
bool Order::would_be_refused(EquivalenceClass& eq_class, const state::JobState& job) const {
  if (!eq_class.refused_length_ms || job.reservation) return false;
  return ++eq_class.looked_at > kLookedAtBehindReservation || length_ms(state_, job) >= *eq_class.refused_length_ms;
}

bool Order::ready(const QueueState& leaf, EquivalenceClass& eq_class) const {
  while (!eq_class.over) {
    if (is_blocked(leaf, eq_class.at)) {
      eq_class.over = true;  // as are all jobs after it
      break;
    }
    const bool known = eq_class.eligible && !eq_class.refused_length_ms;
    if (!eq_class.taken && (known || (waits(eq_class.at) && !would_be_refused(eq_class, *state_.job(eq_class.at.job)))))
      return true;
    advance(leaf, eq_class);  // too early, nominated, or too long for a backfill reservation
  }
  return false;
}

std::optional<Order::Candidate> Order::leaf_head(const QueueState& leaf) {
  std::optional<Candidate> best;
  for (EquivalenceClass& eq_class : eq_classes_of(leaf)) {
    if (ready(leaf, eq_class) && (!best || eq_class.at < best->key))
      best = Candidate{eq_class.at.job, leaf.id, static_cast<std::size_t>(&eq_class - eq_classes_.data()), eq_class.at};
  }
  return best;
}

const Amounts& Order::asked_by(const Candidate& candidate) {
  EquivalenceClass& eq_class = eq_classes_[candidate.eq_class];
  if (eq_class.least == nullptr)
    eq_class.least = &own_least_.emplace_back(least_amounts(state_, state_.job(candidate.job)->spec));
  return *eq_class.least;
}

Order::Rank Order::rank_of(QueueId id) {
  const QueueState& queue = state_.queue(id);
  const Amounts& asked = asked_by(*standings_[id.index()].candidate);
  const Candidate& candidate = *standings_[id.index()].candidate;
  Rank rank;
  const bool within = !eq_classes_[candidate.eq_class].borrows && ranks_within(state_, id, candidate.leaf, asked);
  rank.standing = within ? 0 : (queue.weight == 0 ? 2 : 1);
  rank.share = counted(id).share;
  return rank;
}

// A total order: every key belongs to one job.
bool Order::later(const Contender& a, const Contender& b) {
  if (a.rank.standing != b.rank.standing) return a.rank.standing > b.rank.standing;
  const int by_share = compare(a.rank.share, b.rank.share);
  return by_share != 0 ? by_share > 0 : state::precedes_elsewhere(b.key, a.key);
}

void Order::rank(SiblingHeap& sibling_heap) {
  const bool many = sibling_heap.unranked.size() > sibling_heap.heap.size();
  for (const QueueId id : sibling_heap.unranked) {
    Standing& standing = standings_[id.index()];
    sibling_heap.heap.push_back({rank_of(id), standing.candidate->key, id, standing.version});
    if (!many) std::push_heap(sibling_heap.heap.begin(), sibling_heap.heap.end(), later);
    standing.ranked = true;
    ++sibling_heap.ranked;
  }
  if (many) std::make_heap(sibling_heap.heap.begin(), sibling_heap.heap.end(), later);
  sibling_heap.unranked.clear();
}

std::optional<Order::Candidate> Order::best_child(const QueueState& queue) {
  SiblingHeap& sibling_heap = sibling_heaps_[queue.id.index()];
  if (!sibling_heap.begun) sibling_heap.unranked = queue.children;
  sibling_heap.begun = true;
  std::erase_if(sibling_heap.unranked, [&](QueueId id) { return !head(id); });
  if (sibling_heap.ranked == 0) {
    if (sibling_heap.unranked.empty()) return std::nullopt;
    // With one child no comparison is needed.
    if (sibling_heap.unranked.size() == 1) return standings_[sibling_heap.unranked.front().index()].candidate;
  }
  rank(sibling_heap);
  while (sibling_heap.heap.front().version != standings_[sibling_heap.heap.front().queue.index()].version) {
    std::pop_heap(sibling_heap.heap.begin(), sibling_heap.heap.end(), later);
    sibling_heap.heap.pop_back();
  }
  return standings_[sibling_heap.heap.front().queue.index()].candidate;
}

// Returns the sum of the children's usage, rescaled to the least share of the children that have a job to evaluate. A
// child without such a job counts in full in the dimension of which `next` takes most.
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
      SiblingHeap& sibling_heap = sibling_heaps_[state_.queue(id).parent.index()];
      --sibling_heap.ranked;
      sibling_heap.unranked.push_back(id);
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
  eq_classes_[last_->eq_class].taken = true;
  forget_path(last_->leaf);
  return last_->job;
}

std::vector<JobId> Order::rest() const {
  std::vector<JobId> rest;
  for (const QueueState& queue : state_.queues()) {
    const Leaf& leaf = leaves_[queue.id.index()];
    const bool strict = queue.policy == QueuePolicy::kStrict;
    std::optional<state::PendingKey> head;
    for (EquivalenceClass eq_class : std::span(eq_classes_).subspan(leaf.begin, leaf.end - leaf.begin)) {
      while (!eq_class.over && (eq_class.taken || !waits(eq_class.at))) advance(queue, eq_class);
      if (eq_class.over || is_blocked(queue, eq_class.at)) continue;
      if (!strict) rest.push_back(eq_class.at.job);
      if (!head || eq_class.at < *head) head = eq_class.at;
    }
    if (strict && head) rest.push_back(head->job);
  }
  return rest;
}

void Order::refuse() {
  const QueueState& leaf = state_.queue(last_->leaf);
  eq_classes_[last_->eq_class].over = true;
  if (leaf.policy == QueuePolicy::kStrict) {
    for (EquivalenceClass& eq_class : eq_classes_of(leaf)) eq_class.over = true;
  }
  forget_path(last_->leaf);
}

void Order::reconsider_as(const Amounts& counts) {
  EquivalenceClass& eq_class = eq_classes_[last_->eq_class];
  eq_class.least = &own_least_.emplace_back(counts);
  eq_class.taken = false;
  forget_path(last_->leaf);
}

void Order::reconsider_as_borrowing() {
  EquivalenceClass& eq_class = eq_classes_[last_->eq_class];
  eq_class.borrows = true;
  eq_class.taken = false;
  forget_path(last_->leaf);
}

void Order::list_owners() {
  owners_.emplace();
  for (std::size_t i = 0; i < active_.size(); ++i) {
    const QueueId leaf = active_[i].key.queue;
    for (QueueId q = state_.quota_path_of(leaf).rules_from; q != state_.root(); q = state_.queue(q).parent) {
      if (!ranks_within(state_, q, leaf, *active_[i].least)) continue;
      owners_->push_back(i);
      break;
    }
  }
}

// Returns the next job of an active class if it could reclaim from a job of the queue `borrower` that counts `counts`;
// else nothing. A job that was found to borrow at its own places may still reclaim other places; `reclaims` says so.
std::optional<Order::Candidate> Order::owner_among(std::size_t place, QueueId borrower, const Amounts& counts,
                                                   const Reclaims& reclaims) {
  const QueueId leaf = active_[place].key.queue;
  const QueueState& queue = state_.queue(leaf);
  const std::span<EquivalenceClass> eq_classes = eq_classes_of(queue);
  EquivalenceClass& eq_class = eq_classes[place - first_of_[leaf.index()]];
  if (!ready(queue, eq_class) || eq_class.preferred) return std::nullopt;
  const Amounts& least = *active_[place].least;
  if (!could_reclaim(state_, leaf, least, borrower, counts)) return std::nullopt;
  const bool found_others = eq_class.borrows || eq_class.least != &least;
  if (found_others && !reclaims(eq_class.at.job)) return std::nullopt;
  Candidate next{eq_class.at.job, leaf, static_cast<std::size_t>(&eq_class - eq_classes_.data()), eq_class.at};
  if (queue.policy == QueuePolicy::kStrict && leaf_head(queue)->job != next.job) return std::nullopt;
  // The turn goes to its queue, where a job of higher priority goes before it.
  if (const auto first = leaf_head(queue); first->key.negated_priority < next.key.negated_priority) next = *first;
  return eq_classes_[next.eq_class].preferred ? std::nullopt : std::optional(next);
}

bool Order::defers_to_owner(const Reclaims& reclaims) {
  if (!owners_) list_owners();
  const Amounts counts = counts_of_last();
  for (const std::size_t place : *owners_) {
    if (active_[place].key.queue == last_->leaf) continue;
    const auto owner = owner_among(place, last_->leaf, counts, reclaims);
    if (owner && (!owner_ || state::precedes_elsewhere(owner->key, owner_->key))) owner_ = owner;
  }
  if (!owner_) return false;
  eq_classes_[owner_->eq_class].preferred = true;
  eq_classes_[last_->eq_class].taken = false;
  forget_path(last_->leaf);
  return true;
}

void Order::refuse_as_long() {
  if (state_.queue(last_->leaf).policy == QueuePolicy::kStrict) return refuse();
  EquivalenceClass& eq_class = eq_classes_[last_->eq_class];
  eq_class.refused_length_ms =
      std::min(length_ms(state_, *state_.job(last_->job)), eq_class.refused_length_ms.value_or(kUnlimited));
  eq_class.over = eq_class.over || eq_class.looked_at > kLookedAtBehindReservation;
  forget_path(last_->leaf);
}

}  // namespace berth::sched
