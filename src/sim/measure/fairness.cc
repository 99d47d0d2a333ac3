#include "sim/measure/fairness.h"

#include <algorithm>
#include <cstddef>

#include "base/checked.h"
#include "sim/measure/step.h"

namespace berth::sim {
namespace {

using Group = std::vector<std::size_t>;  // queues that share one amount

std::int64_t floor_of(const QueueSample& queue) { return std::min(queue.guaranteed_milli, queue.demand_milli); }

// Divides `surplus` by weight. Queues that need less than their part leave the rest to the others, so each round either
// ends or satisfies at least one queue.
void fill_by_weight(const std::vector<QueueSample>& queues, const Group& group, std::int64_t surplus,
                    std::vector<std::int64_t>& shares) {
  Group hungry;
  for (const std::size_t i : group) {
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

// If the guarantees exceed the amount, because nodes are lost, all shrink by the same ratio.
void divide(const std::vector<QueueSample>& queues, const Group& group, std::int64_t amount,
            const std::vector<std::int64_t>& floors, std::vector<std::int64_t>& shares) {
  std::int64_t guaranteed = 0;
  for (const std::size_t i : group) guaranteed = checked_add(guaranteed, floors[i]);
  for (const std::size_t i : group) {
    shares[i] = guaranteed > amount ? static_cast<std::int64_t>(Int128{floors[i]} * amount / guaranteed) : floors[i];
  }
  if (guaranteed < amount) fill_by_weight(queues, group, amount - guaranteed, shares);
}

struct QueueGroups {
  Group top;
  std::vector<Group> below;  // by queue
};

QueueGroups groups_of(const std::vector<QueueSample>& queues) {
  QueueGroups groups;
  groups.below.resize(queues.size());
  for (std::size_t i = 0; i < queues.size(); ++i) {
    (queues[i].parent == QueueSample::kNoParent ? groups.top : groups.below[queues[i].parent]).push_back(i);
  }
  return groups;
}

// Returns what each queue gets before the surplus is divided: its own guarantee, or the guarantees below it if their
// sum is larger.
std::vector<std::int64_t> floors_of(const std::vector<QueueSample>& queues) {
  std::vector<std::int64_t> floors(queues.size(), 0);
  for (std::size_t i = queues.size(); i-- > 0;) {
    floors[i] = std::max(floor_of(queues[i]), std::min(floors[i], queues[i].demand_milli));
    if (queues[i].parent != QueueSample::kNoParent) floors[queues[i].parent] += floors[i];
  }
  return floors;
}

std::vector<std::int64_t> shares_of(const FairnessSample& sample, const QueueGroups& groups) {
  std::vector<std::int64_t> shares(sample.queues.size(), 0);
  const std::vector<std::int64_t> floors = floors_of(sample.queues);
  divide(sample.queues, groups.top, sample.capacity_milli, floors, shares);
  for (std::size_t i = 0; i < sample.queues.size(); ++i) {
    divide(sample.queues, groups.below[i], shares[i], floors, shares);
  }
  return shares;
}

}  // namespace

std::vector<std::int64_t> entitlements(const FairnessSample& sample) {
  return shares_of(sample, groups_of(sample.queues));
}

FairnessPoint fairness_at(const FairnessSample& sample) {
  FairnessPoint point;
  point.at_ms = sample.at_ms;
  const QueueGroups groups = groups_of(sample.queues);
  const std::vector<std::int64_t> shares = shares_of(sample, groups);
  std::int64_t gap = 0;
  double sum = 0;
  double squares = 0;
  double count = 0;
  for (std::size_t i = 0; i < sample.queues.size(); ++i) {
    const QueueSample& queue = sample.queues[i];
    if (queue.usage_milli < floor_of(queue)) {
      ++point.queues_violated;
      point.shortfall_milli += floor_of(queue) - queue.usage_milli;
    }
    if (!groups.below[i].empty()) continue;  // only leaves count; parents are the sum of theirs
    gap = std::max(gap, shares[i] - queue.usage_milli);
    if (queue.demand_milli == 0 || shares[i] == 0) continue;
    const double satisfaction = static_cast<double>(queue.usage_milli) / static_cast<double>(shares[i]);
    sum += satisfaction;
    squares += satisfaction * satisfaction;
    ++count;
  }
  if (sample.capacity_milli > 0) {
    point.gap_pct = 100 * static_cast<double>(gap) / static_cast<double>(sample.capacity_milli);
  }
  // If no queue has anything, that is equal, too.
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
