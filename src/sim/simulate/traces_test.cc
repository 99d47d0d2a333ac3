// berth's own log as a trace, and the figures published for the public ones.

#include <doctest/doctest.h>
#include <fcntl.h>

#include <string>
#include <vector>

#include "model/event.h"
#include "sim/report/metrics.h"
#include "sim/simulate/event_log.h"
#include "sim/simulate/runs.h"
#include "sim/simulate/simulate_fixture.h"
#include "sim/trace/arrivals.h"
#include "sim/trace/public_file.h"
#include "sim/trace/shape.h"
#include "store/event_codec.h"
#include "store/sqlite_log.h"
#include "store/temporary_directory.h"

namespace berth::sim {
namespace {

// --- berth's own log ---

std::vector<Event> logged_events() {
  ClusterConfig config = default_cluster_config();
  config.queues.front().guaranteed.gpu_milli = 500;
  config.queues.front().policy = QueuePolicy::kStrict;
  config.scheduling.backfill_reservations = 4;
  NodeSpec node;
  node.name = "n1";
  node.cpu_milli = 8000;
  node.memory_mib = 64'000;
  node.gpus.resize(2);
  for (Gpu& gpu : node.gpus) gpu.model = "A100";
  JobSubmitted submitted;
  submitted.job = JobId(1);
  submitted.spec.queue = "default";
  submitted.spec.user = "ada";
  submitted.spec.groups.resize(1);
  submitted.spec.groups[0].request.gpus = 2;
  submitted.spec.estimate_s = 60;
  submitted.spec.exclusive = true;
  JobSubmitted waiting = submitted;
  waiting.job = JobId(2);
  return {ClusterConfigured{config, 1, "op"},
          NodeRegistered{NodeId(0), node, 1},
          submitted,
          waiting,
          AttemptStarted{JobId(1), 1, {}, 0, 0, true},
          CheckpointReported{JobId(1), 1, 7},
          AttemptEnded{JobId(1), 1, Outcome::kPreempted, 0, {}},
          AttemptStarted{JobId(1), 2, {}, 0, 0, true},
          AttemptEnded{JobId(1), 2, Outcome::kSucceeded, 0, {}},
          JobFinished{JobId(1), Outcome::kSucceeded, 0, {}}};
}

TEST_CASE("the event log is a trace: jobs that ended, nodes, and the queues they ran under") {
  const store::TemporaryDirectory directory;
  {
    auto log = store::SqliteLog::open(directory.path());
    REQUIRE(log.has_value());
    const auto epoch = (*log)->take_epoch();
    REQUIRE(epoch.has_value());
    std::vector<store::Record> records;
    for (const Event& event : logged_events()) {
      const auto seq = static_cast<std::uint64_t>(records.size() + 1);
      const Timestamp time{1'000'000 + static_cast<std::int64_t>(seq) * 1000};
      records.push_back(store::to_record({seq, time, event}, *epoch));
    }
    REQUIRE((*log)->append(*epoch, 1, records).has_value());
  }
  const auto logged = read_event_log(directory.path().string());
  REQUIRE_MESSAGE(logged.has_value(), (logged ? "" : logged.error().message));
  REQUIRE(logged->trace.jobs.size() == 1);
  const TraceJob& one = logged->trace.jobs[0];
  CHECK(one.submit_ms == 0);
  CHECK(one.duration_ms == 2000);  // a second that the first attempt had saved, and the second attempt
  CHECK(one.gpus_per_worker == 2);
  CHECK(one.user == "ada");
  CHECK(logged->trace.rows_left_out.at("jobs that had not ended") == 1);
  // The report names what a replay does not support, for the jobs that are run.
  std::int64_t set_aside = 0;
  for (const auto& [text, count] : logged->trace.defaults_taken) {
    if (text.find("set aside") != std::string::npos) set_aside += count;
  }
  CHECK(set_aside == 2);
  REQUIRE(logged->trace.notes.size() == 1);
  CHECK(logged->trace.notes[0].find("guaranteed and max GPUs: 1; the rest") != std::string::npos);
  CHECK(logged->policy.name == "logged");
  CHECK(logged->policy.scheduling.backfill_reservations == 4);
  CHECK(fleet_gpu_milli(logged->trace) == 2000);
  REQUIRE(logged->queues.size() == 1);
  CHECK(logged->queues[0].guaranteed_milli == 500);
}

// --- against the public traces ---

TEST_CASE("FGD on the published arrivals of one seed is near the published figure") {
  const std::string jobs = public_file("openb/openb_default.jobs.csv.gz");
  if (jobs.empty()) return;
  Trace trace;
  REQUIRE(read_jobs(jobs, {}, trace).has_value());
  REQUIRE(read_nodes(public_file("openb/raw/openb_node_list_gpu_node.csv"), {}, trace).has_value());
  split_workers(trace, 8);
  fill_tenants(trace, "default");
  const auto arrivals = read_arrivals(public_file("openb/arrivals_default.csv.gz"), {});
  REQUIRE(arrivals.has_value());
  const auto order = arrival_order(trace, *arrivals, 42);
  REQUIRE(order.has_value());
  const auto workload = make_workload(trace, {});
  REQUIRE(workload.has_value());
  const PolicySpec fgd = policy("FGD");
  const auto result = run_in_order({*workload, fgd, 42, false, nullptr}, *order);
  REQUIRE(result.has_value());
  const auto measured = measure_runs({*result});
  // The published run of this seed ends at 95.29 %; another order of ties moves one run by some tenths.
  CHECK(measured[0].measures.gpu_allocation_at_130_pct.value() == doctest::Approx(95.29).epsilon(0.008));
}

TEST_CASE("strict fifo and the oracle give the reference waits when GPUs are only counted") {
  const std::string jobs = public_file("philly_users/philly_aug_oct2017_users.jobs.csv.gz");
  if (jobs.empty()) return;
  Trace trace;
  REQUIRE(read_jobs(jobs, {}, trace).has_value());
  cut_window(trace, *parse_day_window("48-58"));
  keep_timed_jobs(trace);
  REQUIRE(add_fleet_shape("112x8xV100", trace).has_value());
  count_gpus_only(trace);
  fill_tenants(trace, "default");
  const RunResult fifo = run(trace, policy("fifo"));
  const RunResult oracle = run(trace, policy("sjf-oracle"));
  const auto measured = measure_runs({fifo, oracle});
  CHECK(measured[0].measures.all.wait_s.mean / 3600 == doctest::Approx(13.10).epsilon(0.002));
  CHECK(measured[1].measures.all.wait_s.mean / 3600 == doctest::Approx(1.65).epsilon(0.005));
}

}  // namespace
}  // namespace berth::sim
