#include "sim/measure/over_seeds.h"

#include <boost/math/distributions/students_t.hpp>
#include <cmath>

#include "base/check.h"

namespace berth::sim {

double student_t_quantile(double p, std::int64_t degrees_of_freedom) {
  BERTH_CHECK(p > 0 && p < 1);
  BERTH_CHECK(degrees_of_freedom >= 1);
  const boost::math::students_t distribution(static_cast<double>(degrees_of_freedom));
  return boost::math::quantile(distribution, p);
}

Estimate estimate(const std::vector<double>& values) {
  Estimate result;
  result.count = static_cast<std::int64_t>(values.size());
  if (values.empty()) return result;
  const auto count = static_cast<double>(values.size());
  double sum = 0;
  for (const double value : values) sum += value;
  result.mean = sum / count;
  if (values.size() < 2) return result;
  double squares = 0;
  for (const double value : values) squares += (value - result.mean) * (value - result.mean);
  result.standard_deviation = std::sqrt(squares / (count - 1));
  result.half_width = student_t_quantile(0.975, result.count - 1) * *result.standard_deviation / std::sqrt(count);
  return result;
}

Estimate paired_difference(const BySeed& values, const BySeed& baseline) {
  std::vector<double> differences;
  for (const auto& [seed, value] : values) {
    const auto other = baseline.find(seed);
    if (other != baseline.end()) differences.push_back(value - other->second);
  }
  return estimate(differences);
}

}  // namespace berth::sim
