#include "control/stacks.h"

#include <algorithm>
#include <vector>

#include "base/planted.h"

namespace berth::control {

namespace {

using state::BorrowedKey;
using state::Charge;
using state::JobState;
using state::QueueState;
using state::State;

const Charge& charge_of(const State& state, const BorrowedKey& key) {
  return state.job(key.job)->attempt->charges[key.charge];
}

std::uint64_t bit_of(const QueueState& queue) { return std::uint64_t{1} << queue.depth; }

void restack(Batch& batch, const BorrowedKey& key, std::uint64_t within) {
  const State& state = batch.state();
  const JobState& job = *state.job(key.job);
  batch.emit(ChargePromoted{key.job, job.attempt->number, key.charge, within, state.guaranteed(job.queue, within)});
}

// All charges that are within at the queue, in the order of the stack.
std::vector<BorrowedKey> within_at(const State& state, const QueueState& queue) {
  std::vector<BorrowedKey> keys;
  for (const JobId id : state.running()) {
    const JobState& job = *state.job(id);
    if (!state.is_below(job.queue, queue.id)) continue;
    for (std::uint32_t c = 0; c < job.attempt->charges.size(); ++c) {
      const Charge& charge = job.attempt->charges[c];
      if ((charge.within & bit_of(queue)) != 0) keys.push_back({charge.order, id, c});
    }
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

// The stack counted anew: what does not fit any more is borrowed from here on.
void count_out(Batch& batch, const QueueState& queue) {
  if (queue.within_usage.is_zero() || inside_guarantee({}, queue.within_usage, queue.guaranteed)) return;
  Amounts used;
  for (const BorrowedKey& key : within_at(batch.state(), queue)) {
    const Charge& charge = charge_of(batch.state(), key);
    if (inside_guarantee(used, charge.amounts, queue.guaranteed))
      used += charge.amounts;
    else
      restack(batch, key, charge.within & ~bit_of(queue));
  }
}

void promote(Batch& batch, const QueueState& queue) {
  std::vector<BorrowedKey> borrowed(queue.borrowed.begin(), queue.borrowed.end());
  if (planted(Bug::kPromotionOrder)) std::reverse(borrowed.begin(), borrowed.end());
  for (const BorrowedKey& key : borrowed) {
    const Charge& charge = charge_of(batch.state(), key);
    if (charge.burst) continue;  // within nowhere
    if (!inside_guarantee(queue.within_usage + queue.nominated, charge.amounts, queue.guaranteed)) continue;
    restack(batch, key, charge.within | bit_of(queue));
  }
}

// Those that are within at the queue though they borrow at its child; the last to start first.
std::vector<BorrowedKey> displaceable(const State& state, const QueueState& queue) {
  std::vector<BorrowedKey> keys;
  for (const QueueId child : queue.children) {
    for (const BorrowedKey& key : state.queue(child).borrowed) {
      if ((charge_of(state, key).within & bit_of(queue)) != 0) keys.push_back(key);
    }
  }
  std::sort(keys.rbegin(), keys.rend());
  return keys;
}

// What is left of the room at the queue when those of them that are within there are not.
Amounts used_without(const State& state, const QueueState& queue, const std::vector<BorrowedKey>& keys) {
  Amounts used = queue.within_usage + queue.nominated;
  for (const BorrowedKey& key : keys) {
    const Charge& other = charge_of(state, key);
    if ((other.within & bit_of(queue)) != 0) used -= other.amounts;
  }
  return used;
}

// As few of them as have to go so that the charge fits, or none if it would not. `used` is what is left of the room
// when all of them are not there.
std::vector<BorrowedKey> displaced(const State& state, const QueueState& queue, const Charge& charge,
                                   const std::vector<BorrowedKey>& keys, Amounts used) {
  std::vector<BorrowedKey> gone;
  if (!inside_guarantee(used, charge.amounts, queue.guaranteed)) return gone;
  for (std::size_t i = keys.size(); i-- > 0;) {  // the first to start are kept first
    const Amounts beside = used + charge_of(state, keys[i]).amounts;
    if (inside_guarantee(beside, charge.amounts, queue.guaranteed))
      used = beside;
    else
      gone.push_back(keys[i]);
  }
  std::reverse(gone.begin(), gone.end());
  return gone;
}

// Where the charge is within when the others have given way at the queue, and at the queues above where that makes
// room for one that is within at the child.
std::uint64_t taken_over(const State& state, const QueueState& queue, const Charge& charge,
                         const std::vector<BorrowedKey>& others) {
  std::uint64_t taken = bit_of(queue);
  bool within_at_child = true;
  for (QueueId q = queue.parent; q != state.root(); q = state.queue(q).parent) {
    const QueueState& above = state.queue(q);
    const bool is_within = (charge.within & bit_of(above)) != 0;
    const bool contended = std::any_of(others.begin(), others.end(), [&](const BorrowedKey& other) {
      return (charge_of(state, other).within & bit_of(above)) != 0;
    });
    const bool takes = !is_within && within_at_child && contended &&
                       inside_guarantee(used_without(state, above, others), charge.amounts, above.guaranteed);
    if (takes) taken |= bit_of(above);
    within_at_child = is_within || takes;
  }
  return taken;
}

void displace(Batch& batch, const QueueState& queue) {
  const State& state = batch.state();
  const std::vector<BorrowedKey> borrowed(queue.borrowed.begin(), queue.borrowed.end());
  std::vector<BorrowedKey> keys = displaceable(state, queue);
  Amounts used = used_without(state, queue, keys);
  for (const BorrowedKey& key : borrowed) {
    if (keys.empty()) break;
    const Charge& charge = charge_of(state, key);
    // Growth stands below every least part.
    if (key.charge != 0 || (charge.within >> (queue.depth + 1) & 1U) == 0) continue;
    const auto others = displaced(state, queue, charge, keys, used);
    const std::uint64_t taken = taken_over(state, queue, charge, others);
    const std::uint64_t rank = charge.within | taken;
    const bool rises = std::all_of(others.begin(), others.end(), [&](const BorrowedKey& other) {
      return state::is_higher(rank, charge_of(state, other).within);
    });
    if (others.empty() || !rises) continue;
    used += charge.amounts;
    std::erase_if(keys, [&](const BorrowedKey& one) {  // both are sorted, the last to start first
      return std::binary_search(others.rbegin(), others.rend(), one);
    });
    for (const BorrowedKey& other : others) restack(batch, other, charge_of(state, other).within & ~taken);
    restack(batch, key, rank);
  }
}

}  // namespace

void settle_stack(Batch& batch, QueueId id) {
  const QueueState& queue = batch.state().queue(id);
  if (queue.removed || id == batch.state().root()) return;
  count_out(batch, queue);
  if (queue.guaranteed.stated == 0) return;
  promote(batch, queue);
  displace(batch, queue);
}

}  // namespace berth::control
