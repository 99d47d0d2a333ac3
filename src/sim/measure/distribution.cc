#include "sim/measure/distribution.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/checked.h"

namespace berth::sim {

std::size_t nearest_rank(std::size_t count, std::int64_t per_mille) {
  BERTH_CHECK(count > 0);
  BERTH_CHECK(per_mille >= 0 && per_mille <= 1000);
  const std::size_t rank = (count * static_cast<std::size_t>(per_mille) + 999) / 1000;
  return rank == 0 ? 0 : rank - 1;
}

Distribution distribution_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const auto at = [&values](std::int64_t per_mille) { return values[nearest_rank(values.size(), per_mille)]; };
  return {.count = static_cast<std::int64_t>(values.size()),
          .mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size()),
          .min = values.front(),
          .p50 = at(500),
          .p90 = at(900),
          .p99 = at(990),
          .max = values.back()};
}

Distribution distribution_of_ms_in_s(std::vector<std::int64_t> values_ms) {
  if (values_ms.empty()) return {};
  std::sort(values_ms.begin(), values_ms.end());
  Int128 sum = 0;
  for (const std::int64_t value : values_ms) sum += value;
  const auto at = [&values_ms](std::int64_t per_mille) {
    return static_cast<double>(values_ms[nearest_rank(values_ms.size(), per_mille)]) / 1000;
  };
  return {.count = static_cast<std::int64_t>(values_ms.size()),
          .mean = static_cast<double>(sum) / static_cast<double>(values_ms.size()) / 1000,
          .min = static_cast<double>(values_ms.front()) / 1000,
          .p50 = at(500),
          .p90 = at(900),
          .p99 = at(990),
          .max = static_cast<double>(values_ms.back()) / 1000};
}

}  // namespace berth::sim
