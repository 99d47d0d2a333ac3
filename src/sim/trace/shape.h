#pragma once
// What an experiment does to a trace before it runs: cut a window, scale the load, split a job's total GPUs over nodes,
// or invent a fleet by its shape. Each step writes what it did into the trace's notes or defaults.

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "sim/trace/trace.h"

namespace berth::sim {

struct DayWindow {
  std::int64_t from_ms = 0;
  std::int64_t to_ms = 0;  // not included
};

// "22-58": days since the trace's start, decimals allowed; the end is not included.
Result<DayWindow> parse_day_window(std::string_view text);

// Keeps the jobs submitted within the window and moves time 0 to its beginning. Jobs without a submission time go.
void cut_window(Trace& trace, DayWindow window);

// Moves time 0 to the first submission, so that what is measured over time does not begin with emptiness.
void start_at_first_submission(Trace& trace);

// "1.3": thousandths of the original load.
Result<std::int64_t> parse_load_milli(std::string_view text);

// Divides every submission time by the factor, so that the same jobs arrive faster (above 1000) or slower.
void scale_load(Trace& trace, std::int64_t load_milli);

// Gives every job whose source has only total GPUs a number of workers:
//   total <= gpus_per_node            one worker
//   a multiple of gpus_per_node       workers of gpus_per_node
//   otherwise                         the fewest equal workers that fit a node (12 on 8 is 2 x 6; 11 is 11 x 1)
// The total never changes. CPU and memory, if stated, are shared out and rounded up.
void split_workers(Trace& trace, std::int64_t gpus_per_node);

// "56x8xV100" or "56x8xV100,10x4xT4": nodes x GPUs x model. CPU and memory are not stated and do not constrain.
Result<void> add_fleet_shape(std::string_view text, Trace& trace);

// Jobs that no run over time can use (no submission time, no duration) go, and are counted.
void keep_timed_jobs(Trace& trace);

// Jobs whose tenant is still unknown, after any overlay, go to this one.
void fill_tenants(Trace& trace, std::string_view tenant);

}  // namespace berth::sim
