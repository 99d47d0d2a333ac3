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

// NodeDelta after each arrival: the load that has arrived so far, and what of it is running.
struct ArrivalSample {
  std::int64_t arrived_gpu_milli = 0;
  std::int64_t allocated_gpu_milli = 0;
  std::int64_t fragmented_gpu_milli = 0;
};

// One queue of the tree at one instant; amounts are of thousandths of a GPU and hold all that is below it.
struct QueueSample {
  std::int64_t usage_milli = 0;
  std::int64_t demand_milli = 0;  // usage plus what waits and could run, never above the queue's max
  std::int64_t guaranteed_milli = 0;
  std::int64_t weight = 1;
  std::size_t parent = kNoParent;  // index into FairnessSample::queues, where parents come before their children

  static constexpr std::size_t kNoParent = static_cast<std::size_t>(-1);
};

// Summed over queues, while a job waits that would lie within the guarantee: by why it waits (sim/simulate/breach.h).
struct BreachTimes {
  std::int64_t unserved_ms = 0;
  std::int64_t leaving_ms = 0;
  std::int64_t no_place_ms = 0;
};

// What the GPUs of a run drew, in whole watt-hours: those that jobs held, and those that were idle.
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
