#pragma once
// Exact arithmetic on step functions: samples in order of time, each valid until the next sample.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/checked.h"

namespace berth::sim {

// Returns the part of [start, end) that is within [from, to), in milliseconds.
inline std::int64_t overlap_ms(std::int64_t start, std::int64_t end, std::int64_t from, std::int64_t to) {
  return std::max<std::int64_t>(0, std::min(end, to) - std::max(start, from));
}

// Returns the sum of value x time over [from, to). `value` maps a sample to an integer; the last sample is valid until
// `to`.
template <class Sample, class Value>
Int128 integral(const std::vector<Sample>& samples, std::int64_t from_ms, std::int64_t to_ms, Value value) {
  Int128 sum = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const std::int64_t end = i + 1 < samples.size() ? samples[i + 1].at_ms : to_ms;
    sum += Int128{value(samples[i])} * overlap_ms(samples[i].at_ms, end, from_ms, to_ms);
  }
  return sum;
}

}  // namespace berth::sim
