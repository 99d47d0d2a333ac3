#pragma once
// Statistics over several seeds: the mean and its 95 % confidence interval by Student's t with n - 1 degrees of
// freedom. And the paired difference of two policies on the same seeds, which removes what the seeds have in common.

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace berth::sim {

struct Estimate {
  std::int64_t count = 0;
  double mean = 0;
  std::optional<double> standard_deviation;  // of the values; absent with fewer than two
  std::optional<double> half_width;          // the interval is mean +- half_width; absent with fewer than two

  // Returns true if the interval does not contain 0.
  bool differs_from_zero() const { return half_width && (mean - *half_width > 0 || mean + *half_width < 0); }
};

// Returns the p quantile of Student's t distribution, 0 < p < 1, df >= 1.
double student_t_quantile(double p, std::int64_t degrees_of_freedom);

Estimate estimate(const std::vector<double>& values);

// Returns `values - baseline` over the seeds that both have.
using BySeed = std::map<std::uint64_t, double>;
Estimate paired_difference(const BySeed& values, const BySeed& baseline);

}  // namespace berth::sim
