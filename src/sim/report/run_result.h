#pragma once
// What one run of the simulator gives to the report: raw outcomes and series. measure_run computes the scalars of
// summary.json from these, so that scalars and data of a run cannot differ.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/measure/outcome.h"
#include "sim/measure/series.h"
#include "sim/trace/trace.h"

namespace berth::sim {

// A span of time in which one job held GPUs of one node.
struct GanttBar {
  std::uint32_t node = 0;
  std::uint32_t queue = 0;  // index into RunResult::queues
  std::int64_t gpu_milli = 0;
  std::int64_t start_ms = 0;
  std::int64_t end_ms = 0;
};

// One arrival of an order without times.
struct ArrivedJob {
  std::uint32_t job = 0;  // index into RunResult::asked
  bool started = false;
};

// What a queue would have paid for a run by one price book, in micro units of its currency. Its children are not in it.
struct QueueBill {
  std::string queue;
  std::int64_t floor_micro = 0;   // used, idle or lent
  std::int64_t burst_micro = 0;   // used beyond the floor
  std::int64_t credit_micro = 0;  // never above 0: for floor that others used
  std::int64_t other_micro = 0;   // premiums, discounts, cores and memory
  std::int64_t total_micro = 0;
};

struct BookBill {
  std::string book;  // its file
  std::string currency;
  std::vector<QueueBill> queues;  // by name
};

struct RunResult {
  std::string policy;
  std::uint64_t seed = 0;
  std::int64_t capacity_gpu_milli = 0;
  std::int64_t end_ms = 0;  // when the run stopped; the last sample of a series holds until then
  double wall_s = 0;        // how long the run took to compute
  std::vector<std::string> queues;
  std::vector<std::int64_t> node_gpu_milli;  // by node, for the Gantt
  std::vector<JobOutcome> jobs;
  std::map<std::string, std::int64_t> refused_because;   // refused jobs by reason
  std::vector<FleetSample> fleet;                        // empty for an order of arrival without times
  std::vector<ArrivalSample> arrivals;                   // empty for a run by the clock
  std::int64_t dropped = 0;                              // arrivals that did not fit; they are not tried again
  std::vector<ArrivedJob> arrived;                       // empty for a run by the clock
  std::shared_ptr<const std::vector<JobOutcome>> asked;  // the jobs that `arrived` refers to; shared by runs
  std::vector<FairnessSample> fairness;                  // may be empty
  BreachTimes guarantees_breached = {};
  std::optional<EnergyUse> energy = {};  // only if watts are given
  std::vector<BookBill> bills = {};      // in the order of --prices; empty if none are given
  std::vector<GanttBar> gantt;           // may be empty
};

// Counts a refused job by reason. A reason may name the job, so there may be very many: after the first twenty they
// count as "other reasons".
void count_refusal(RunResult& run, const std::string& why);

// The input of an experiment, as the report states it.
struct ReportInput {
  std::string title;
  std::string command;  // the command line that made the report
  std::string version;
  bool synthetic = false;  // the results are invented; every page says so
  std::int64_t jobs = 0;
  std::optional<std::int64_t> nodes;  // absent if only GPUs are counted
  std::int64_t gpu_milli = 0;
  std::vector<std::string> sources;
  std::map<std::string, std::int64_t> defaults_taken;
  std::map<std::string, std::int64_t> rows_left_out;
  std::map<std::string, std::int64_t> overlay_taken;
  std::vector<std::string> notes;
  BadRows bad_rows;
};

// Returns everything except title, command and version, from the trace as it was run.
ReportInput describe_input(const Trace& trace);

}  // namespace berth::sim
