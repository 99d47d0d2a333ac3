#pragma once
// The scalars of one run, computed from its outcomes and series by pure functions. Times are in seconds, because people
// read them; percentages are of 100. An absent value could not be measured in this run.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/measure/distribution.h"
#include "sim/measure/outcome.h"
#include "sim/measure/series.h"

namespace berth::sim {

struct GroupMeasures {
  std::int64_t jobs = 0;
  Distribution wait_s;           // wait_s, jct_s and slowdown are of completed jobs
  Distribution wait_at_least_s;  // of all jobs that were not refused; unfinished jobs count their wait until the end
  Distribution jct_s;
  Distribution slowdown;
};

struct RunMeasures {
  bool in_order = false;  // an order of arrival without times: nothing over time was measured
  std::int64_t jobs = 0;  // or arrivals
  std::int64_t completed = 0;
  std::int64_t running_at_end = 0;
  std::int64_t waiting_at_end = 0;
  std::int64_t refused = 0;
  GroupMeasures all;
  std::map<std::string, GroupMeasures> by_size, by_queue, by_class;
  std::optional<double> gpu_allocation_pct;  // at the end of the arrivals; over time: mean until the last arrival
  std::optional<double> gpu_allocation_at_100_pct;  // when the load that arrived equals the capacity
  std::optional<double> gpu_allocation_at_130_pct;  // the end of the published experiment, averaged as it averages
  std::optional<double> fragmentation_pct;          // of capacity, at the end of the arrivals or mean over time
  std::optional<double> fragmentation_of_idle_pct;  // the same, of what is idle: the paper's ratio
  std::optional<double> utilization_pct;            // time-weighted mean, first submission to last completion
  std::optional<double> mean_queue_length;
  std::optional<std::int64_t> max_queue_length;
  std::optional<double> jain_index;          // time-weighted mean over queues with demand
  std::optional<double> mean_share_gap_pct;  // time-weighted mean of the dominant-share gap
  std::optional<double> max_share_gap_pct;
  double guarantee_violation_s = 0;  // queue-seconds below min(guarantee, demand)
  double guarantee_shortfall_gpu_h = 0;
  double guarantee_breached_s = 0;  // queue-seconds in which a pending job would be within the guarantee
  double guarantee_unserved_s = 0;  // part of it: the job would fit without the borrowers, and no job leaves for it
  double guarantee_leaving_s = 0;   // part of it: the victims are leaving
  double guarantee_no_place_s = 0;  // part of it: the job would not fit even without all borrowers
  std::int64_t preemptions = 0;
  std::int64_t restarts = 0;
  std::int64_t moves = 0;
  double gpu_hours_useful = 0;
  double gpu_hours_lost = 0;
  std::optional<double> energy_kwh;       // energy of used and of idle GPUs
  std::optional<double> energy_busy_kwh;  // energy of used GPUs
  double makespan_s = 0;                  // first submission to last completion
};

struct MeasureInput {
  const std::vector<JobOutcome>& jobs;
  const std::vector<FleetSample>& fleet;
  const std::vector<ArrivalSample>& arrivals;
  const std::vector<FairnessSample>& fairness;
  std::int64_t capacity_gpu_milli = 0;
  std::int64_t end_ms = 0;
  std::int64_t dropped = 0;  // arrivals that were tried once and did not fit; they have no outcome
  BreachTimes guarantees_breached = {};
  std::optional<EnergyUse> energy = {};
};

RunMeasures measure_run(const MeasureInput& run);

// Returns the percentage, rounded half up, exactly: the x of a cell "at x % arrived".
std::int64_t rounded_percent(std::int64_t part, std::int64_t whole);

}  // namespace berth::sim
