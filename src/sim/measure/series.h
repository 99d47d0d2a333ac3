#pragma once
// Values over time, as a run records them: one sample per change, valid until the next sample. Integrals are exact.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace berth::sim {

// The fleet from `at_ms` until the next sample.
struct FleetSample {
  std::int64_t at_ms = 0;
  std::int64_t capacity_gpu_milli = 0;
  std::int64_t allocated_gpu_milli = 0;
  std::int64_t fragmented_gpu_milli = 0;  // F of FGD summed over nodes; 0 if a run does not compute it
  std::int64_t waiting_jobs = 0;
  std::int64_t waiting_gpu_milli = 0;
  std::int64_t running_jobs = 0;
};

// The state after each arrival: the load that has arrived so far, and how much of it runs.
struct ArrivalSample {
  std::int64_t arrived_gpu_milli = 0;
  std::int64_t allocated_gpu_milli = 0;
  std::int64_t fragmented_gpu_milli = 0;
};

// One queue of the tree at one instant; amounts are in milli-GPU and include what is below it.
struct QueueSample {
  std::int64_t usage_milli = 0;
  std::int64_t demand_milli = 0;  // usage plus pending requests that could run, never above the queue's max
  std::int64_t guaranteed_milli = 0;
  std::int64_t weight = 1;
  std::size_t parent = kNoParent;  // index into FairnessSample::queues, where parents come before their children

  static constexpr std::size_t kNoParent = static_cast<std::size_t>(-1);
};

// Times in which a pending job would be within the guarantee, summed over queues, by cause (sim/simulate/breach.h).
struct BreachTimes {
  std::int64_t unserved_ms = 0;
  std::int64_t leaving_ms = 0;
  std::int64_t no_place_ms = 0;
};

// Energy of the GPUs of a run, in whole watt-hours: of used and of idle GPUs.
struct EnergyUse {
  std::int64_t busy_wh = 0;
  std::int64_t idle_wh = 0;
};

struct FairnessSample {
  std::int64_t at_ms = 0;
  std::int64_t capacity_milli = 0;
  std::vector<QueueSample> queues;
};

}  // namespace berth::sim
