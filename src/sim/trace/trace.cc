#include "sim/trace/trace.h"

#include <algorithm>

#include "base/check.h"
#include "base/checked.h"

namespace berth::sim {
namespace {

constexpr std::size_t kMostJobDefaults = 64;  // the bits of TraceJob::defaults

void forget_assumptions(Trace& trace, const TraceJob& job) {
  for (std::size_t bit = 0; bit < trace.job_defaults.size(); ++bit) {
    if ((job.defaults >> bit & 1U) == 0) continue;
    const auto counted = trace.defaults_taken.find(trace.job_defaults[bit]);
    if (--counted->second == 0) trace.defaults_taken.erase(counted);
  }
}

}  // namespace

void assume(Trace& trace, TraceJob& job, std::string_view text) {
  auto& known = trace.job_defaults;
  const auto bit = static_cast<std::size_t>(std::find(known.begin(), known.end(), text) - known.begin());
  BERTH_CHECK(bit < kMostJobDefaults);
  if (bit == known.size()) known.emplace_back(text);
  job.defaults |= std::uint64_t{1} << bit;
  ++trace.defaults_taken[known[bit]];
}

void leave_out_jobs(Trace& trace, const std::string& rule, const std::function<bool(const TraceJob&)>& predicate) {
  const auto gone = std::erase_if(trace.jobs, [&](const TraceJob& job) {
    if (!predicate(job)) return false;
    forget_assumptions(trace, job);
    return true;
  });
  if (gone > 0) trace.rows_left_out[rule] += static_cast<std::int64_t>(gone);
}

std::int64_t fleet_gpu_milli(const Trace& trace) {
  std::int64_t sum = 0;
  for (const TraceNode& node : trace.nodes) sum = checked_add(sum, checked_multiply(node.gpus, 1000));
  return sum;
}

}  // namespace berth::sim
