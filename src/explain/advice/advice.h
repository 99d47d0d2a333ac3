#pragma once
// Advice: which of the usual pitfalls of a shared GPU cluster this one is in, with its numbers, and what would mend it
// (docs/advice.md).
//
// 1. Each rule has a threshold, stated where it is worked out, and is silent below it. Who follows all advice hears
//    nothing.
// 2. It is told of now: of the configuration, of the nodes that are not lost and of the jobs that live. Nothing is
//    decided by it, and it looks at the state alone, and at what was measured of its GPUs.
// 3. Work and length are bounded, and equal states get equal answers.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/timestamp.h"
#include "model/advice.h"
#include "model/gpu_utilization.h"
#include "state/state.h"

namespace berth::explain {

struct AdviceReport {
  std::vector<Advice> items;                                 // warnings first; by code; of one code the heaviest first
  std::vector<std::pair<AdviceCode, std::size_t>> left_out;  // so many more of the code
  bool complete = true;                                      // all jobs were looked at
};

struct AdviceEffort {
  std::size_t jobs = 100'000;      // that are looked at, the oldest
  std::int64_t looks = 2'000'000;  // at nodes, domains and kinds of them, for jobs
  std::size_t of_a_code = 10;      // pieces that are told
};

AdviceReport advise(const state::State& state, Timestamp now, const GpuUtilization& gpu_utilization,
                    const AdviceEffort& effort = {});

}  // namespace berth::explain
