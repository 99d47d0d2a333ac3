#include "billing/series.h"

#include <algorithm>

namespace berth::billing {
namespace {

Timestamp start_of(std::int64_t hour) { return {hour * kHourMs}; }

void flow(const Rates& rates, std::int64_t ms, Amounts& sum) {
  for (std::size_t i = 0; i < rates.size(); ++i) sum[i] += Int128{rates[i]} * ms;
}

}  // namespace

void Series::change(const Rates& delta, Timestamp now) {
  close(now);
  for (std::size_t i = 0; i < rates_.size(); ++i) rates_[i] = checked_add(rates_[i], delta[i]);
}

// Adds the amounts at the present rates to the hours and the intervals.
void Series::close(Timestamp now) {
  BERTH_CHECK(now >= since_ || is_still());
  if (!is_still() && now > since_) {
    for (Timestamp at = since_; at < now;) {
      const std::int64_t hour = hour_of(at);
      const Timestamp end = std::min(now, start_of(hour + 1));
      if (hours_.empty() || hours_.back().hour != hour) hours_.push_back({hour, {}});
      for (std::size_t i = 0; i < rates_.size(); ++i) {
        auto& amount = hours_.back().amounts[i];
        amount = checked_add(amount, checked_multiply(rates_[i], end - at));
      }
      at = end;
    }
    recent_.push_back({since_, now, rates_});
  }
  since_ = now;
}

Amounts Series::between(Timestamp from, Timestamp to) const {
  Amounts sum{};
  if (to <= from) return sum;
  if (to > since_) flow(rates_, to - std::max(from, since_), sum);
  if (from >= since_) return sum;
  // The closed part ends at since_, and its last hour has nothing after that. So this hour counts as full if the window
  // reaches since_.
  const std::int64_t first = on_the_hour(from) ? hour_of(from) : hour_of(from) + 1;
  const std::int64_t past = to >= since_ ? hour_of(since_) + 1 : hour_of(to);
  if (first >= past) {
    add_intervals(from, std::min(to, start_of(first)), sum);
    if (to > start_of(first)) add_intervals(start_of(first), to, sum);
    return sum;
  }
  add_intervals(from, start_of(first), sum);
  add_hours(first, past, sum);
  if (to < since_) add_intervals(start_of(past), to, sum);
  return sum;
}

Amounts Series::total(Timestamp now) const {
  Amounts sum{};
  for (const Hour& hour : hours_) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += hour.amounts[i];
  }
  flow(rates_, now - since_, sum);
  return sum;
}

void Series::add_hours(std::int64_t first, std::int64_t past, Amounts& sum) const {
  auto hour = std::partition_point(hours_.begin(), hours_.end(), [&](const Hour& one) { return one.hour < first; });
  for (; hour != hours_.end() && hour->hour < past; ++hour) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += hour->amounts[i];
  }
}

void Series::add_intervals(Timestamp from, Timestamp to, Amounts& sum) const {
  auto one = std::partition_point(recent_.begin(), recent_.end(), [&](const Interval& i) { return i.end <= from; });
  for (; one != recent_.end() && one->begin < to; ++one) {
    flow(one->rates, std::min(one->end, to) - std::max(one->begin, from), sum);
  }
}

void Series::forget_intervals_before(std::int64_t hour) {
  const auto first_kept =
      std::partition_point(recent_.begin(), recent_.end(), [&](const Interval& i) { return i.end <= start_of(hour); });
  recent_.erase(recent_.begin(), first_kept);
}

}  // namespace berth::billing
