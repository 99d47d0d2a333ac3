#include "state/past_usage.h"

#include <algorithm>

#include "base/checked.h"

namespace berth::state {

namespace {

__extension__ using UInt128 = unsigned __int128;

constexpr unsigned kRootBits = 62;

constexpr std::uint64_t floor_of_root(UInt128 square) {
  std::uint64_t root = 0;
  for (unsigned bit = 63; bit-- > 0;) {
    const std::uint64_t larger = root | std::uint64_t{1} << bit;
    if (static_cast<UInt128>(larger) * larger <= square) root = larger;
  }
  return root;
}

// 2^-(1/2), 2^-(1/4), 2^-(1/8), ... in units of 2^-62.
constexpr std::array<std::uint64_t, kDecayBits> kRoots = [] {
  std::array<std::uint64_t, kDecayBits> roots{};
  std::uint64_t power = std::uint64_t{1} << (kRootBits - 1);
  for (std::uint64_t& root : roots) {
    root = floor_of_root(static_cast<UInt128>(power) << kRootBits);
    power = root;
  }
  return roots;
}();

}  // namespace

std::uint64_t decay(std::int64_t elapsed_ms, std::int64_t half_life_ms) {
  if (elapsed_ms <= 0) return std::uint64_t{1} << kDecayBits;
  const std::int64_t halvings = elapsed_ms / half_life_ms;
  if (halvings > static_cast<std::int64_t>(kDecayBits)) return 0;
  const auto rest = static_cast<UInt128>(elapsed_ms % half_life_ms);
  const auto part = static_cast<std::uint64_t>((rest << kDecayBits) / static_cast<UInt128>(half_life_ms));
  UInt128 power = UInt128{1} << kRootBits;
  for (unsigned i = 0; i < kDecayBits; ++i) {
    if ((part >> (kDecayBits - 1 - i) & 1U) != 0) power = (power * kRoots[i]) >> kRootBits;
  }
  return static_cast<std::uint64_t>(power >> (kRootBits - kDecayBits)) >> static_cast<unsigned>(halvings);
}

SharedAmounts average_at(const PastUsage& past, Timestamp now, std::int64_t half_life_ms) {
  const auto kept = Int128{static_cast<std::int64_t>(decay(now.ms - past.at.ms, half_life_ms))};
  const Int128 whole = Int128{1} << kDecayBits;
  SharedAmounts average{};
  for (std::size_t i = 0; i < average.size(); ++i) {
    average[i] = static_cast<std::int64_t>((past.average[i] * kept + past.since[i] * (whole - kept)) >> kDecayBits);
  }
  return average;
}

}  // namespace berth::state
