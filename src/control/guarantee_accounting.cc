#include "control/guarantee_accounting.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/planted.h"
#include "state/within.h"

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

void set_within(Batch& batch, const BorrowedKey& key, std::uint64_t within) {
  const State& state = batch.state();
  const JobState& job = *state.job(key.job);
  batch.emit(
      ChargePromoted{key.job, job.attempt->number, key.charge, within, state::is_within_all(state, job.queue, within)});
}

// Returns the charges within the guarantee of the queue, in start order.
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

// Rule 1: counts the charges within the guarantee again, in start order. A charge that no longer fits becomes borrowed.
void count_out(Batch& batch, const QueueState& queue) {
  if (queue.within_usage.is_zero() || inside_guarantee({}, queue.within_usage, queue.guaranteed)) return;
  Amounts used;
  for (const BorrowedKey& key : within_at(batch.state(), queue)) {
    const Charge& charge = charge_of(batch.state(), key);
    if (inside_guarantee(used, charge.amounts, queue.guaranteed))
      used += charge.amounts;
    else
      set_within(batch, key, charge.within & ~bit_of(queue));
  }
}

// Rule 2: counts borrowed charges within the guarantee, in start order, as long as they fit. The room only shrinks in
// this loop, so an amount that does not fit once is not tried again.
void promote(Batch& batch, const QueueState& queue) {
  const auto& alike = queue.stack.borrowed_of;
  const auto fits = [&](const Amounts& amounts) {
    return inside_guarantee(queue.within_or_nominated(), amounts, queue.guaranteed);
  };
  std::vector<Amounts> fitting;
  for (const auto& [amounts, keys] : alike) {
    if (fits(amounts)) fitting.push_back(amounts);
  }
  while (!fitting.empty()) {
    std::optional<BorrowedKey> next;
    for (const Amounts& amounts : fitting) {
      const auto& keys = alike.at(amounts);
      const BorrowedKey key = planted(Bug::kPromotionOrder) ? *keys.rbegin() : *keys.begin();
      if (!next || (planted(Bug::kPromotionOrder) ? *next < key : key < *next)) next = key;
    }
    set_within(batch, *next, charge_of(batch.state(), *next).within | bit_of(queue));
    std::erase_if(fitting, [&](const Amounts& amounts) { return !alike.contains(amounts) || !fits(amounts); });
  }
}

// A charge that is within the guarantee of a queue, but borrowed at the child of that queue.
struct Displaceable {
  BorrowedKey key;
  Amounts amounts;
};

// Returns all displaceable charges at the queue, in start order.
std::vector<Displaceable> displaceable(const State& state, const QueueState& queue) {
  std::vector<Displaceable> there;
  for (const QueueId child : queue.children) {
    for (const BorrowedKey& key : state.queue(child).borrowed) {
      const Charge& charge = charge_of(state, key);
      if ((charge.within & bit_of(queue)) != 0) there.push_back({key, charge.amounts});
    }
  }
  std::sort(there.begin(), there.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
  return there;
}

// Returns the bits of the mask `within` that a charge loses when it is displaced at `queue`. It loses the bit of the
// queue. It also loses the bit of each ancestor in `taken` at whose child it then is borrowed.
std::uint64_t lost_of(const State& state, const QueueState& queue, std::uint64_t taken, std::uint64_t within) {
  std::uint64_t left = within & ~bit_of(queue);
  QueueId child = queue.id;
  for (QueueId q = queue.parent; q != state.root(); q = state.queue(q).parent) {
    if ((left & bit_of(state.queue(child))) == 0) left &= ~(taken & bit_of(state.queue(q)));
    child = q;
  }
  return within & ~left;
}

// The room of a queue's guarantee while displace() takes charges out of it.
struct Room {
  std::vector<Displaceable> there;
  Amounts used;   // usage of the guarantee with the charges in `there`
  Amounts least;  // usage without any displaceable charge
};

// Removes charges from the room until `charge` fits, the last started first, and returns the removed ones. Then each
// removed charge that fits beside `charge` after all is put back, the first started first. Returns none if `charge`
// would not fit even without all of them.
std::vector<Displaceable> take_out(Room& room, const QueueState& queue, const Charge& charge) {
  std::vector<Displaceable> out;
  if (!inside_guarantee(room.least, charge.amounts, queue.guaranteed)) return out;
  while (!room.there.empty() && !inside_guarantee(room.used, charge.amounts, queue.guaranteed)) {
    room.used -= room.there.back().amounts;
    out.push_back(room.there.back());
    room.there.pop_back();
  }
  for (std::size_t i = out.size(); i-- > 0;) {
    if (!inside_guarantee(room.used + out[i].amounts, charge.amounts, queue.guaranteed)) continue;
    room.used += out[i].amounts;
    room.there.push_back(out[i]);
    out.erase(out.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return out;
}

void put_back(Room& room, const std::vector<Displaceable>& out) {
  for (const Displaceable& one : out) {
    room.used += one.amounts;
    const auto at = std::lower_bound(room.there.begin(), room.there.end(), one,
                                     [](const auto& a, const auto& b) { return a.key < b.key; });
    room.there.insert(at, one);
  }
}

// Returns the bits that `charge` gains when it displaces `others` at the queue. It gains the bit of the queue. It also
// gains the bit of an ancestor if three things hold: it is within the guarantee of the child, some of `others` lose
// that bit, and the charge then fits.
std::uint64_t taken_over(const State& state, const QueueState& queue, const Charge& charge,
                         const std::vector<BorrowedKey>& others) {
  std::uint64_t taken = bit_of(queue);
  bool within_at_child = true;
  for (QueueId q = queue.parent; q != state.root(); q = state.queue(q).parent) {
    const QueueState& above = state.queue(q);
    const bool is_within = (charge.within & bit_of(above)) != 0;
    bool contended = false;
    Amounts used = above.within_or_nominated();  // without the charges that are displaced there
    for (const BorrowedKey& key : others) {
      const Charge& other = charge_of(state, key);
      if ((lost_of(state, queue, taken | bit_of(above), other.within) & bit_of(above)) == 0) continue;
      contended = true;
      used -= other.amounts;
    }
    const bool takes =
        !is_within && within_at_child && contended && inside_guarantee(used, charge.amounts, above.guaranteed);
    if (takes) taken |= bit_of(above);
    within_at_child = is_within || takes;
  }
  return taken;
}

void displace(Batch& batch, const QueueState& queue) {
  const State& state = batch.state();
  const state::Stack& stack = queue.stack;
  if (stack.idle_usage == Amounts()) return;
  const Amounts used = queue.within_or_nominated();
  const Amounts least = used - stack.idle_usage;
  const auto fits = [&](const Amounts& amounts) { return inside_guarantee(least, amounts, queue.guaranteed); };
  // A cheap test first: entitled charges are a part of the borrowed ones. If no borrowed amount fits, no entitled
  // charge fits.
  if (std::none_of(stack.borrowed_of.begin(), stack.borrowed_of.end(), [&](const auto& of) { return fits(of.first); }))
    return;
  if (std::none_of(stack.entitled.begin(), stack.entitled.end(),
                   [&](const BorrowedKey& key) { return fits(charge_of(state, key).amounts); }))
    return;
  const std::vector<BorrowedKey> entitled(stack.entitled.begin(), stack.entitled.end());
  Room room{displaceable(state, queue), used, least};
  for (const BorrowedKey& key : entitled) {
    if (room.there.empty()) break;
    const Charge& charge = charge_of(state, key);
    const auto out = take_out(room, queue, charge);
    std::vector<BorrowedKey> others;
    for (const Displaceable& one : out) others.push_back(one.key);
    const std::uint64_t taken = taken_over(state, queue, charge, others);
    const std::uint64_t rank = charge.within | taken;
    const bool rises = std::all_of(others.begin(), others.end(), [&](const BorrowedKey& other) {
      return state::is_higher(rank, charge_of(state, other).within);
    });
    if (others.empty() || !rises) {
      put_back(room, out);
      continue;
    }
    room.used += charge.amounts;
    room.least += charge.amounts;
    for (const BorrowedKey& other : others) {
      const std::uint64_t within = charge_of(state, other).within;
      set_within(batch, other, within & ~lost_of(state, queue, taken, within));
    }
    set_within(batch, key, rank);
  }
}

}  // namespace

void reconcile_guarantee(Batch& batch, QueueId id) {
  const QueueState& queue = batch.state().queue(id);
  if (queue.removed || id == batch.state().root()) return;
  count_out(batch, queue);
  if (queue.guaranteed.stated == 0) return;
  promote(batch, queue);
  displace(batch, queue);
}

}  // namespace berth::control
