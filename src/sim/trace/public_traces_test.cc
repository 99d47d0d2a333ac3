// Tests the readers on the public traces: row counts and sums that their owners or our notes state. The traces are not
// in the repository; without them each case prints that it was skipped.

#include <doctest/doctest.h>

#include <string>

#include "sim/trace/arrivals.h"
#include "sim/trace/public_file.h"
#include "sim/trace/read_trace.h"
#include "sim/trace/shape.h"

namespace berth::sim {
namespace {

Trace read_public_jobs(const std::string& path) {
  Trace trace;
  const auto read = read_jobs(path, {}, trace);
  CHECK_MESSAGE(read.has_value(), (read ? "" : read.error().message));
  return trace;
}

Trace read_public_nodes(const std::string& path) {
  Trace trace;
  const auto read = read_nodes(path, {}, trace);
  CHECK_MESSAGE(read.has_value(), (read ? "" : read.error().message));
  return trace;
}

std::int64_t requested_gpu_milli(const Trace& trace) {
  std::int64_t sum = 0;
  for (const TraceJob& job : trace.jobs) sum += job.total_gpu_milli();
  return sum;
}

void check_nodes(const std::string& path, std::size_t nodes, std::int64_t gpus) {
  const std::string file = public_file(path);
  if (file.empty()) return;
  CAPTURE(path);
  const Trace trace = read_public_nodes(file);
  CHECK(trace.bad_rows.total == 0);
  CHECK(trace.nodes.size() == nodes);
  CHECK(fleet_gpu_milli(trace) == gpus * 1000);
}

void check_jobs(const std::string& path, std::size_t jobs) {
  const std::string file = public_file(path);
  if (file.empty()) return;
  CAPTURE(path);
  const Trace trace = read_public_jobs(file);
  CHECK(trace.bad_rows.total == 0);
  CHECK(trace.jobs.size() == jobs);
}

TEST_CASE("the public lists have the rows and GPUs that their owners state") {
  check_nodes("openb/nodes.csv", 1523, 6212);
  check_nodes("openb/raw/openb_node_list_all_node.csv", 1523, 6212);
  check_nodes("openb/raw/openb_node_list_gpu_node.csv", 1213, 6212);
  check_nodes("philly/nodes.csv", 552, 2490);
  check_nodes("philly/raw/cluster_machine_list", 552, 2490);
  check_nodes("pai2020/nodes.csv.gz", 1897, 6742);
  check_nodes("spot2026/nodes.csv.gz", 4278, 10412);
  check_jobs("philly/philly_to_oct2017.jobs.csv.gz", 38'046);
  check_jobs("philly_users/philly_aug_oct2017_users.jobs.csv.gz", 11'118);
  check_jobs("dlrm2025/dlrm2025.jobs.csv.gz", 16'176);
}

TEST_CASE("the GPU nodes of openb have the cores and the memory of the experiment") {
  const std::string file = public_file("openb/raw/openb_node_list_gpu_node.csv");
  if (file.empty()) return;
  std::int64_t cpu_milli = 0;
  std::int64_t mem_mib = 0;
  for (const TraceNode& node : read_public_nodes(file).nodes) {
    cpu_milli += node.cpu_milli;
    mem_mib += node.mem_mib;
  }
  CHECK(cpu_milli == 107'018'000);
  CHECK(mem_mib == 503'828'480);
}

TEST_CASE("openb as Alibaba publishes it reads the same as the normalised list") {
  for (const std::string list : {"default", "cpu050", "cpu200", "gpushare40", "gpushare80", "gpuspec10", "gpuspec25",
                                 "multigpu20", "multigpu40"}) {
    const std::string native_file = public_file("openb/openb_" + list + ".jobs.csv.gz");
    const std::string raw_file = public_file("openb/raw/openb_pod_list_" + list + ".csv.gz");
    if (native_file.empty() || raw_file.empty()) continue;
    CAPTURE(list);
    const Trace native = read_public_jobs(native_file);
    const Trace raw = read_public_jobs(raw_file);
    CHECK(native.bad_rows.total == 0);
    CHECK(raw.bad_rows.total == 0);
    REQUIRE(native.jobs.size() == raw.jobs.size());
    std::size_t differing = 0;
    for (std::size_t i = 0; i < raw.jobs.size(); ++i) {
      TraceJob expected = native.jobs[i];
      expected.job_class.clear();  // "unknown": the normaliser's word, not Alibaba's
      differing += expected == raw.jobs[i] ? 0U : 1U;
    }
    CHECK(differing == 0);
    CHECK(raw.jobs.size() >= 7439);
    CHECK(raw.jobs.size() <= 8832);
  }
}

TEST_CASE("the default openb list asks for 6,086.8 GPUs, 897 of its pods never ran, and each seed arrives at 130 %") {
  const std::string jobs_file = public_file("openb/openb_default.jobs.csv.gz");
  const std::string arrivals_file = public_file("openb/arrivals_default.csv.gz");
  if (jobs_file.empty() || arrivals_file.empty()) return;
  const Trace trace = read_public_jobs(jobs_file);
  CHECK(requested_gpu_milli(trace) / 100 == 60'868);
  std::int64_t never_ran = 0;
  for (const TraceJob& job : trace.jobs) never_ran += job.duration_ms ? 0 : 1;
  CHECK(never_ran == 897);
  const auto arrivals = read_arrivals(arrivals_file, {});
  REQUIRE(arrivals);
  CHECK(arrivals->pods_by_seed.size() == 10);
  CHECK(arrivals->pods_by_seed.at(42).size() == 10'866);
  for (std::uint64_t seed = 42; seed <= 51; ++seed) {
    const auto order = arrival_order(trace, *arrivals, seed);
    REQUIRE(order);
    std::int64_t arrived = 0;
    for (const std::size_t job : *order) arrived += trace.jobs[job].total_gpu_milli();
    // At least 130 % of 6,212 GPUs, and not by more than one large pod.
    CHECK(arrived >= 8'075'600 - 8000);
    CHECK(arrived < 8'075'600 + 8000);
  }
}

void check_window(const std::string& path, const char* days, std::size_t jobs) {
  const std::string file = public_file(path);
  if (file.empty()) return;
  CAPTURE(path);
  Trace trace = read_public_jobs(file);
  cut_window(trace, parse_day_window(days).value());
  keep_timed_jobs(trace);
  CHECK(trace.jobs.size() == jobs);
  const std::int64_t before = requested_gpu_milli(trace);
  split_workers(trace, 8);
  CHECK(requested_gpu_milli(trace) == before);
}

TEST_CASE("the windows of the reference waits have the jobs that the reference counts") {
  check_window("philly/philly_to_oct2017.jobs.csv.gz", "22-58", 36'118);
  check_window("philly_users/philly_aug_oct2017_users.jobs.csv.gz", "48-58", 10'779);
}

TEST_CASE("hosts whose GPUs are not published are 847 bad rows, or nodes of a stated size") {
  const std::string file = public_file("lingjun2023/nodes.csv");
  if (file.empty()) return;
  CHECK(read_public_nodes(file).bad_rows.total == 847);
  Trace trace;
  ReadOptions options;
  options.gpus_of_silent_node = 8;
  REQUIRE(read_nodes(file, options, trace));
  CHECK(trace.nodes.size() == 847);
  CHECK(trace.nodes[0].rack == "G6/P10/S14");
}

}  // namespace
}  // namespace berth::sim
