#pragma once
// Changes of a trace before a run: cut a window, scale the load, split the total GPUs of a job over nodes, or invent a
// fleet. Each step is recorded in the notes or defaults of the trace.

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

// Keeps the jobs submitted within the window and moves time 0 to its start. Jobs without a submission time are removed.
void cut_window(Trace& trace, DayWindow window);

// Moves time 0 to the first submission, so that measures over time do not begin with an empty fleet.
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

// Removes jobs without a submission time or a duration, and counts them.
void keep_timed_jobs(Trace& trace);

// Sets this tenant on jobs whose tenant is still unknown after any overlay.
void fill_tenants(Trace& trace, std::string_view tenant);

}  // namespace berth::sim
