#pragma once
// Fairness of one run over time.
//
// The entitlement of a queue at an instant is its guarantee, up to its demand, plus a share of the rest in proportion
// to weights, never more than its demand. That is weighted max-min by progressive filling (Bertsekas and Gallager,
// "Data Networks", 2nd ed., section 6.5.2). The fleet is divided so among the top queues, and the entitlement of each
// queue among its children. With one resource, the dominant share of a queue is its usage over capacity.
//
//   share gap   the largest shortfall of usage below entitlement among leaf queues, as a part of capacity
//   Jain        (sum x)^2 / (n sum x^2) over the n leaf queues with demand, x = usage / entitlement (Jain, Chiu and
//               Hawe, "A Quantitative Measure of Fairness", DEC-TR-301, 1984); 1 is perfectly fair
//   violation   usage below min(guarantee, demand), of any queue of the tree

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/measure/series.h"

namespace berth::sim {

// Returns the entitlements in the order of sample.queues. Integers; rounding leaves less than one thousandth per queue
// undivided.
std::vector<std::int64_t> entitlements(const FairnessSample& sample);

struct FairnessPoint {
  std::int64_t at_ms = 0;
  double gap_pct = 0;          // percent of capacity
  std::optional<double> jain;  // absent when no queue has demand
  std::int64_t queues_violated = 0;
  std::int64_t shortfall_milli = 0;  // sum over the violated queues
};

FairnessPoint fairness_at(const FairnessSample& sample);

struct FairnessSummary {
  std::optional<double> mean_gap_pct, max_gap_pct, jain;
  double violation_s = 0;  // queue-seconds
  double shortfall_gpu_h = 0;
};

// Returns time-weighted means over the samples until `end_ms`.
FairnessSummary summarize_fairness(const std::vector<FairnessSample>& samples, std::int64_t end_ms);

}  // namespace berth::sim
