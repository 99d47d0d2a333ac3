#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/checked.h"
#include "billing/rate.h"

namespace berth::billing {
namespace {

std::int64_t capped(Int128 micro) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  return micro > kMost ? kMost : static_cast<std::int64_t>(micro);
}

bool may_use(const JobSpec& spec, const std::string& model) {
  return std::all_of(spec.groups.begin(), spec.groups.end(), [&](const TaskGroup& group) {
    const auto& names = group.request.gpu_models;
    return group.request.gpus == 0 || names.empty() || std::find(names.begin(), names.end(), model) != names.end();
  });
}

struct PerHour {
  Int128 floor = 0;
  Int128 burst = 0;
  Int128 floor_gpus = 0;  // of the GPUs alone, without premiums and discounts
  Int128 burst_gpus = 0;
};

PerHour price_per_hour(const JobSpec& spec, const PricePeriod& prices, const GpuPrice* gpu) {
  std::int64_t percent = 100;
  const BilledJob job = billed_job(spec);
  for (const PriceAdjustment& one : prices.adjustments) {
    if (applies(one.cause, job)) percent += one.percent;
  }
  PerHour sum;
  for (const TaskGroup& group : spec.groups) {
    const TaskRequest& request = group.request;
    const Int128 resources =
        Int128{request.cpu_milli} * prices.cpu_micro / kMilli + Int128{request.memory_mib} * prices.memory_micro / 1024;
    Int128 floor = 0;
    Int128 burst = 0;
    if (gpu != nullptr) {
      floor = Int128{request.total_gpu_milli()} * gpu->floor_micro / kMilli;
      burst = Int128{request.total_gpu_milli()} * gpu->burst_micro / kMilli;
      for (const auto& [profile, micro] : gpu->mig_micro) {
        if (profile == request.mig_profile) burst = Int128{request.gpus} * micro;
      }
    }
    sum.floor_gpus += group.count * floor;
    sum.burst_gpus += group.count * burst;
    sum.floor += group.count * (floor * percent / 100 + resources);
    sum.burst += group.count * (burst * percent / 100 + resources);
  }
  return sum;
}

// Returns the off-peak time from now to the time limit, each millisecond times its discount in percent.
Int128 off_peak_percent_ms(const PriceBook& book, const PricePeriod& prices, Timestamp now, std::int64_t limit_s) {
  constexpr std::int64_t kLongestS = std::int64_t{10} * 366 * 86'400;
  const Timestamp end = now + std::min(limit_s, kLongestS) * 1000;
  Int128 sum = 0;
  for (const OffPeak& window : prices.off_peak) {
    const TimeZone* zone = book.zone(window.zone);
    BERTH_CHECK(zone != nullptr);
    for (const TimeSpan& span : spans_of(window, *zone, now, end))
      sum += Int128{span.end - span.begin} * window.discount_percent;
  }
  return sum;
}

}  // namespace

std::vector<CostEstimate> estimate_cost(const JobSpec& spec, const std::vector<std::string>& models,
                                        const PriceBook& book, Timestamp now) {
  const PricePeriod* prices = book.at(now);
  std::vector<CostEstimate> estimates;
  if (prices == nullptr) return estimates;
  const Int128 off_peak = off_peak_percent_ms(book, *prices, now, spec.time_limit_s);
  const auto until_limit = [&](Int128 per_hour, Int128 gpus) {
    return capped(per_hour * spec.time_limit_s / 3600 - gpus * off_peak / 360'000'000);
  };
  const auto add = [&](const std::string& model, const GpuPrice* gpu) {
    const PerHour hour = price_per_hour(spec, *prices, gpu);
    CostEstimate one{.currency = book.currency, .model = model, .time_limit_s = spec.time_limit_s};
    one.floor_per_hour_micro = capped(hour.floor);
    one.burst_per_hour_micro = capped(hour.burst);
    one.floor_micro = until_limit(hour.floor, hour.floor_gpus);
    one.burst_micro = until_limit(hour.burst, hour.burst_gpus);
    estimates.push_back(std::move(one));
  };
  const bool with_gpus = std::any_of(spec.groups.begin(), spec.groups.end(),
                                     [](const TaskGroup& group) { return group.request.gpus > 0; });
  if (!with_gpus) add("", nullptr);
  std::vector<std::string> sorted = models;
  std::sort(sorted.begin(), sorted.end());
  for (const std::string& model : sorted) {
    const GpuPrice* gpu = prices->gpu(model);
    if (with_gpus && gpu != nullptr && may_use(spec, model)) add(model, gpu);
  }
  return estimates;
}

}  // namespace berth::billing
