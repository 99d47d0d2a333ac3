#pragma once
// Past usage of a queue: the average of its usage, where the weight of earlier usage halves with each half-life
// (Slurm's PriorityDecayHalfLife, as an average instead of a sum). A queue that uses the same amount for a long time
// has that amount as its average. When it stops, the average halves in each half-life.
//
// The record is updated only when usage changes. Between two changes usage is constant, so the average at any time has
// a closed form and is read without an update. Integers only, rounded down, equal on every machine.

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/timestamp.h"
#include "model/resources.h"

namespace berth::state {

// The dimensions in which fair share is measured.
inline constexpr std::array<std::size_t, 3> kSharedDims = {kDimGpuEquivalent, kDimCpu, kDimMemory};
using SharedAmounts = std::array<std::int64_t, kSharedDims.size()>;

struct PastUsage {
  SharedAmounts average{};
  SharedAmounts since{};  // usage from `at` on
  Timestamp at;
  bool operator==(const PastUsage&) const = default;
};

inline SharedAmounts shared_part(const Amounts& amounts) {
  SharedAmounts part{};
  for (std::size_t i = 0; i < part.size(); ++i) part[i] = amounts[kSharedDims[i]];
  return part;
}

inline constexpr unsigned kDecayBits = 32;

// Returns the decay factor 2^-(elapsed / half_life) in units of 2^-32, rounded down, accurate to 2^-31. Requires a
// half-life above 0.
std::uint64_t decay(std::int64_t elapsed_ms, std::int64_t half_life_ms);

// Returns the average at `now`. Requires that `now` is not before `past.at`.
SharedAmounts average_at(const PastUsage& past, Timestamp now, std::int64_t half_life_ms);

}  // namespace berth::state
