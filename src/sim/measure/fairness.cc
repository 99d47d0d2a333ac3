#include "sim/measure/fairness.h"

#include <algorithm>
#include <cstddef>

#include "base/checked.h"
#include "sim/measure/step.h"

namespace berth::sim {
namespace {

std::int64_t floor_of(const QueueSample& queue) { return std::min(queue.guaranteed_milli, queue.demand_milli); }

// Shares `surplus` out by weight; queues that need less than their part leave the rest to the others, so each round
// either ends or satisfies at least one queue.
void fill_by_weight(const std::vector<QueueSample>& queues, std::int64_t surplus, std::vector<std::int64_t>& shares) {
  std::vector<std::size_t> hungry;
  for (std::size_t i = 0; i < queues.size(); ++i) {
    if (queues[i].demand_milli > shares[i] && queues[i].weight > 0) hungry.push_back(i);
  }
  while (!hungry.empty() && surplus > 0) {
    std::int64_t weights = 0;
    for (const std::size_t i : hungry) weights += queues[i].weight;
    const auto part = [&](std::size_t i) {
      return static_cast<std::int64_t>(Int128{surplus} * queues[i].weight / weights);
    };
    const auto satisfied = [&](std::size_t i) { return queues[i].demand_milli - shares[i] <= part(i); };
    const auto last = std::stable_partition(hungry.begin(), hungry.end(), [&](std::size_t i) { return !satisfied(i); });
    if (last == hungry.end()) {
      for (const std::size_t i : hungry) shares[i] += part(i);
      return;
    }
    for (auto it = last; it != hungry.end(); ++it) {
      surplus -= queues[*it].demand_milli - shares[*it];
      shares[*it] = queues[*it].demand_milli;
    }
    hungry.erase(last, hungry.end());
  }
}

}  // namespace

std::vector<std::int64_t> entitlements(const FairnessSample& sample) {
  std::vector<std::int64_t> shares;
  std::int64_t guaranteed = 0;
  for (const QueueSample& queue : sample.queues) {
    shares.push_back(floor_of(queue));
    guaranteed = checked_add(guaranteed, floor_of(queue));
  }
  if (guaranteed > sample.capacity_milli) {
    // Nodes are lost and the guarantees no longer fit: they shrink alike.
    for (std::int64_t& share : shares) {
      share = static_cast<std::int64_t>(Int128{share} * sample.capacity_milli / guaranteed);
    }
    return shares;
  }
  fill_by_weight(sample.queues, sample.capacity_milli - guaranteed, shares);
  return shares;
}

FairnessPoint fairness_at(const FairnessSample& sample) {
  FairnessPoint point;
  point.at_ms = sample.at_ms;
  const std::vector<std::int64_t> shares = entitlements(sample);
  std::int64_t gap = 0;
  double sum = 0;
  double squares = 0;
  double count = 0;
  for (std::size_t i = 0; i < sample.queues.size(); ++i) {
    const QueueSample& queue = sample.queues[i];
    gap = std::max(gap, shares[i] - queue.usage_milli);
    if (queue.usage_milli < floor_of(queue)) {
      ++point.queues_violated;
      point.shortfall_milli += floor_of(queue) - queue.usage_milli;
    }
    if (queue.demand_milli == 0 || shares[i] == 0) continue;
    const double satisfaction = static_cast<double>(queue.usage_milli) / static_cast<double>(shares[i]);
    sum += satisfaction;
    squares += satisfaction * satisfaction;
    ++count;
  }
  if (sample.capacity_milli > 0) {
    point.gap_pct = 100 * static_cast<double>(gap) / static_cast<double>(sample.capacity_milli);
  }
  // Nobody having anything is equal, if not happy.
  if (count > 0) point.jain = squares == 0 ? 1.0 : sum * sum / (count * squares);
  return point;
}

FairnessSummary summarize_fairness(const std::vector<FairnessSample>& samples, std::int64_t end_ms) {
  FairnessSummary summary;
  Int128 violation_ms = 0;
  Int128 shortfall_milli_ms = 0;
  double gap = 0;
  double gap_ms = 0;
  double jain = 0;
  double jain_ms = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const FairnessPoint point = fairness_at(samples[i]);
    const std::int64_t until = i + 1 < samples.size() ? samples[i + 1].at_ms : end_ms;
    const std::int64_t ms = std::max<std::int64_t>(0, until - samples[i].at_ms);
    violation_ms += Int128{point.queues_violated} * ms;
    shortfall_milli_ms += Int128{point.shortfall_milli} * ms;
    if (ms == 0) continue;
    gap += point.gap_pct * static_cast<double>(ms);
    gap_ms += static_cast<double>(ms);
    summary.max_gap_pct = std::max(summary.max_gap_pct.value_or(0), point.gap_pct);
    if (!point.jain) continue;
    jain += *point.jain * static_cast<double>(ms);
    jain_ms += static_cast<double>(ms);
  }
  if (gap_ms > 0) summary.mean_gap_pct = gap / gap_ms;
  if (jain_ms > 0) summary.jain = jain / jain_ms;
  summary.violation_s = static_cast<double>(violation_ms) / 1000;
  summary.shortfall_gpu_h = static_cast<double>(shortfall_milli_ms) / 1000 / 3'600'000;
  return summary;
}

}  // namespace berth::sim
