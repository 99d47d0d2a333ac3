#pragma once
// Summarizes a set of numbers by six values. Percentiles are by nearest rank: p99 is the smallest value that at least
// 99 % of the values do not exceed. So it always is one of the values.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace berth::sim {

struct Distribution {
  std::int64_t count = 0;
  double mean = 0, min = 0, p50 = 0, p90 = 0, p99 = 0, max = 0;  // all 0 when count is 0
};

// Returns the index of the p-th percentile among `count` > 0 sorted values; p in per mille (990 for p99).
std::size_t nearest_rank(std::size_t count, std::int64_t per_mille);

Distribution distribution_of(std::vector<double> values);
// The sum is exact; the mean is rounded once.
Distribution distribution_of_ms_in_s(std::vector<std::int64_t> values_ms);

}  // namespace berth::sim
