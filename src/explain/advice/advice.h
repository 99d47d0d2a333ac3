#pragma once
// Advice: the usual pitfalls of a shared GPU cluster that this cluster shows, with its numbers and what to change
// (docs/advice.md).
//
// 1. Each rule has a threshold, stated beside its code, and gives no advice below it.
// 2. It is about now: the configuration, the nodes that are not lost, the live jobs, and measured GPU utilization. It
//    decides nothing.
// 3. Work and length are limited by counts, so equal states give equal advice.

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/timestamp.h"
#include "model/advice.h"
#include "model/gpu_utilization.h"
#include "state/state.h"

namespace berth::explain {

struct AdviceReport {
  std::vector<Advice> items;  // sorted: warnings first, then by code, then the heaviest first
  std::vector<std::pair<AdviceCode, std::size_t>> left_out;  // by code: how many items were left out
  bool complete = true;                                      // false if the limit of work was used up
};

struct AdviceEffort {
  std::size_t jobs = 100'000;      // the most jobs that are examined, the oldest first
  std::int64_t looks = 2'000'000;  // the most nodes, domains and kinds of nodes that are examined
  std::size_t of_a_code = 10;      // the most items of one code
};

// What jobs within guarantees have used in the last days, of the queues that have jobs; the meter counts it.
struct FloorUse {
  std::string queue;
  std::vector<std::int64_t> milli_by_day;  // the mean of each day, in thousandths of GPUs; as many days for each queue
};

AdviceReport advise(const state::State& state, Timestamp now, const GpuUtilization& gpu_utilization,
                    const AdviceEffort& effort = {}, const std::vector<FloorUse>& floor_use = {});

}  // namespace berth::explain
