#pragma once
// Past usage of a queue, as a decaying average: what it has used, with half the weight for each half-life that has gone
// by since (Slurm's PriorityDecayHalfLife, as an average instead of a sum). A queue that uses the same for long has an
// average of just that; one that stops is forgotten by half in each half-life.
//
// Brought up to date only when usage changes, and read at any time without a change: between two changes usage is
// constant, so the average has a closed form. Integers only, rounded down, everywhere the same.

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/timestamp.h"
#include "model/resources.h"

namespace berth::state {

// The dimensions that fairness is measured in.
inline constexpr std::array<std::size_t, 3> kSharedDims = {kDimGpuEquivalent, kDimCpu, kDimMemory};
using SharedAmounts = std::array<std::int64_t, kSharedDims.size()>;

struct PastUsage {
  SharedAmounts average{};
  SharedAmounts since{};  // what is used from `at` on
  Timestamp at;
  bool operator==(const PastUsage&) const = default;
};

inline SharedAmounts shared_part(const Amounts& amounts) {
  SharedAmounts part{};
  for (std::size_t i = 0; i < part.size(); ++i) part[i] = amounts[kSharedDims[i]];
  return part;
}

inline constexpr unsigned kDecayBits = 32;

// floor(2^32 * 2^-(elapsed / half_life)), within 2^-31 of it. The half-life is above 0.
std::uint64_t decay(std::int64_t elapsed_ms, std::int64_t half_life_ms);

// The average as it is at `now`, which is not before `at`.
SharedAmounts average_at(const PastUsage& past, Timestamp now, std::int64_t half_life_ms);

}  // namespace berth::state
