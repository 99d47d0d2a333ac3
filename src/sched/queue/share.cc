#include "sched/queue/share.h"

#include <algorithm>
#include <bit>

namespace berth::sched {

using state::kSharedDims;
using state::QueueState;
using state::State;

namespace {

__extension__ using UInt128 = unsigned __int128;

constexpr unsigned kRatioBits = 30;

// floor(2^30 * a / b) for a <= b, after both are cut to the 96 bits that leave room for the shift.
std::int64_t ratio(UInt128 a, UInt128 b) {
  const auto high = static_cast<std::uint64_t>(b >> 64U);
  const int bits = high == 0 ? 64 : 128 - std::countl_zero(high);
  const auto cut = static_cast<unsigned>(std::max(0, bits - 96));
  return static_cast<std::int64_t>(((a >> cut) << kRatioBits) / (b >> cut));
}

UInt128 product(std::int64_t a, std::int64_t b) { return static_cast<UInt128>(a) * static_cast<UInt128>(b); }

Fraction share_in(const State& state, std::int64_t used, std::size_t dim, std::int64_t weight) {
  const std::int64_t capacity = state.capacity()[dim];
  if (used == 0 || capacity == 0) return {0, 1};
  return {used, checked_multiply(capacity, weight)};
}

}  // namespace

SharedAmounts shared_usage(const State& state, const QueueState& queue, Timestamp now) {
  SharedAmounts amounts = state.past_usage(queue, now);
  for (std::size_t i = 0; i < amounts.size(); ++i) {
    amounts[i] = checked_add(amounts[i], queue.usage[kSharedDims[i]] + queue.nominated[kSharedDims[i]]);
  }
  return amounts;
}

Fraction dominant_share(const State& state, const SharedAmounts& amounts, std::int64_t weight) {
  Fraction share{0, 1};
  for (std::size_t i = 0; i < kSharedDims.size(); ++i) {
    const Fraction one = share_in(state, amounts[i], kSharedDims[i], weight);
    if (share < one) share = one;
  }
  return share;
}

Fraction dominant_share(const State& state, const QueueState& queue, Timestamp now) {
  return dominant_share(state, shared_usage(state, queue, now), queue.weight);
}

std::size_t most_asked(const State& state, const Amounts& asked) {
  std::size_t most = 0;
  Fraction largest{0, 1};
  for (std::size_t i = 0; i < kSharedDims.size(); ++i) {
    const Fraction part = share_in(state, asked[kSharedDims[i]], kSharedDims[i], 1);
    if (!(largest < part)) continue;
    largest = part;
    most = i;
  }
  return most;
}

SharedAmounts rescaled(SharedAmounts amounts, const Fraction& share, const Fraction& least) {
  if (share.infinite() || least.infinite() || !(least < share)) return amounts;
  const std::int64_t part =
      ratio(product(least.numerator, share.denominator), product(least.denominator, share.numerator));
  for (std::int64_t& amount : amounts) {
    amount = static_cast<std::int64_t>((Int128{amount} * part) >> kRatioBits);
  }
  return amounts;
}

}  // namespace berth::sched
