// fuzz: src/sim/trace berth_base Boost::json yaml-cpp ZLIB::ZLIB
// Job files of every format, as they come from other people: no input may crash a reader, and what it calls a sound job
// keeps within the limits that the simulator relies on.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "sim/trace/read_trace.h"
#include "sim/trace/row_sink.h"
#include "sim/trace/shape.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace berth::sim;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  ReadOptions options;
  options.max_bytes = std::size_t{1} << 20U;
  Trace trace;
  if (!read_jobs_text("fuzz", bytes, options, trace)) return 0;
  for (const TraceJob& job : trace.jobs) {
    BERTH_CHECK(!job.id.empty());
    BERTH_CHECK(job.submit_ms.value_or(0) >= 0);
    BERTH_CHECK(job.duration_ms.value_or(0) >= 0);
    BERTH_CHECK(job.gpus_per_worker >= 0 && job.gpus_per_worker <= kMaxGpus);
    BERTH_CHECK(job.workers.value_or(1) >= 1);
    BERTH_CHECK(job.gpu_milli >= 0 && job.gpu_milli <= 1000);
  }
  split_workers(trace, 8);
  for (const TraceJob& job : trace.jobs) BERTH_CHECK(job.workers.has_value());
  return 0;
}
