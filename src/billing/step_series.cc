#include "billing/step_series.h"

#include <algorithm>

#include "base/check.h"
#include "base/checked.h"

namespace berth::billing {

void StepSeries::add(Timestamp time, std::int64_t delta) {
  if (delta == 0) return;
  if (!steps_.empty() && steps_.back().from == time) {
    steps_.back().rate = checked_add(steps_.back().rate, delta);
    return;
  }
  BERTH_CHECK(steps_.empty() || steps_.back().from < time);
  steps_.push_back({time, checked_add(rate(), delta)});
  if (steps_.size() > kStepsKept) fold_oldest();
}

std::int64_t StepSeries::integral(Timestamp from, Timestamp to) const {
  std::int64_t sum = 0;
  const auto first = std::lower_bound(hours_.begin(), hours_.end(), std::pair(from.ms / kHourMs, std::int64_t{0}),
                                      [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto at = first; at != hours_.end() && at->first * kHourMs < to.ms; ++at) sum = checked_add(sum, at->second);
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const Timestamp begin = std::max(steps_[i].from, from);
    const Timestamp end = i + 1 < steps_.size() ? std::min(steps_[i + 1].from, to) : to;
    if (begin < end) sum = checked_add(sum, checked_multiply(steps_[i].rate, end - begin));
  }
  return sum;
}

// Turns the older half of the steps into hours, up to a full hour.
void StepSeries::fold_oldest() {
  const std::int64_t until = steps_[steps_.size() / 2].from.ms / kHourMs * kHourMs;
  if (until <= steps_.front().from.ms) return;  // all within one hour: nothing can be folded yet
  for (std::int64_t hour = steps_.front().from.ms / kHourMs; hour * kHourMs < until; ++hour) {
    const std::int64_t begin = std::max(hour * kHourMs, steps_.front().from.ms);
    std::int64_t sum = 0;
    for (std::size_t i = 0; i + 1 < steps_.size(); ++i) {
      const std::int64_t from = std::max(begin, steps_[i].from.ms);
      const std::int64_t to = std::min((hour + 1) * kHourMs, steps_[i + 1].from.ms);
      if (from < to) sum = checked_add(sum, checked_multiply(steps_[i].rate, to - from));
    }
    if (sum == 0) continue;
    if (!hours_.empty() && hours_.back().first == hour) {
      hours_.back().second = checked_add(hours_.back().second, sum);
    } else {
      hours_.emplace_back(hour, sum);
    }
  }
  std::size_t keep = 0;
  while (keep + 1 < steps_.size() && steps_[keep + 1].from.ms <= until) ++keep;
  steps_.erase(steps_.begin(), steps_.begin() + static_cast<std::ptrdiff_t>(keep));
  steps_.front().from = Timestamp{std::max(steps_.front().from.ms, until)};
  folded_until_ = Timestamp{until};
}

}  // namespace berth::billing
