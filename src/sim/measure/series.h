#pragma once
// Values over time as a run records them: one sample per change, each holding until the next. Integrals are exact.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace berth::sim {

// The fleet as it is from `at_ms` until the next sample.
struct FleetSample {
  std::int64_t at_ms = 0;
  std::int64_t capacity_gpu_milli = 0;
  std::int64_t allocated_gpu_milli = 0;
  std::int64_t fragmented_gpu_milli = 0;  // the F of FGD summed over nodes; 0 where a run does not compute it
  std::int64_t waiting_jobs = 0;
  std::int64_t waiting_gpu_milli = 0;
  std::int64_t running_jobs = 0;
};

// Taken after each arrival: the load that has arrived so far, and what of it is running.
struct ArrivalSample {
  std::int64_t arrived_gpu_milli = 0;
  std::int64_t allocated_gpu_milli = 0;
  std::int64_t fragmented_gpu_milli = 0;
};

// One queue at one instant. Amounts are of the resource by which the run measures fairness (thousandths of a GPU).
struct QueueSample {
  std::uint32_t queue = 0;  // index into RunResult::queues
  std::int64_t usage_milli = 0;
  std::int64_t demand_milli = 0;  // usage plus what waits and could run
  std::int64_t guaranteed_milli = 0;
  std::int64_t weight = 1;
};

struct FairnessSample {
  std::int64_t at_ms = 0;
  std::int64_t capacity_milli = 0;
  std::vector<QueueSample> queues;
};

}  // namespace berth::sim
