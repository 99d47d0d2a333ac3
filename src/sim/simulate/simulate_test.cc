// Runs on traces small enough to work out by hand.

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "model/event.h"
#include "sim/report/summary.h"
#include "sim/report/write_report.h"
#include "sim/simulate/event_log.h"
#include "sim/simulate/progress_bar.h"
#include "sim/simulate/run.h"
#include "sim/simulate/runs.h"
#include "sim/simulate/simulate_main.h"
#include "sim/trace/arrivals.h"
#include "sim/trace/shape.h"
#include "store/event_codec.h"
#include "store/sqlite_log.h"
#include "store/temporary_directory.h"

namespace berth::sim {
namespace {

TraceJob job(const std::string& id, double submit_s, double run_s, std::int64_t gpus) {
  TraceJob one;
  one.id = id;
  one.tenant = "lab";
  one.submit_ms = static_cast<std::int64_t>(submit_s * 1000);
  one.duration_ms = static_cast<std::int64_t>(run_s * 1000);
  one.gpus_per_worker = gpus;
  one.workers = 1;
  return one;
}

TraceJob share(const std::string& id, std::int64_t milli) {
  TraceJob one = job(id, 0, 1, 1);
  one.gpu_milli = milli;
  return one;
}

Trace trace_of(const std::string& fleet, std::vector<TraceJob> jobs) {
  Trace trace;
  CHECK(add_fleet_shape(fleet, trace).has_value());
  trace.jobs = std::move(jobs);
  return trace;
}

PolicySpec policy(const std::string& name) {
  const auto found = find_policy(name);
  REQUIRE(found.has_value());
  return *found;
}

PolicySpec attained_service(const std::string& thresholds) {
  const auto read = read_policy_text(
      "las.yaml", "{name: las, order: attained-service, preemption: {thresholds_gpu_s: [" + thresholds + "]}}");
  REQUIRE(read.has_value());
  return *read;
}

RunResult run(const Trace& trace, const PolicySpec& spec, const std::vector<OverlayQueue>& queues = {}) {
  const auto workload = make_workload(trace, queues);
  REQUIRE_MESSAGE(workload.has_value(), (workload ? "" : workload.error().message));
  auto result = run_by_clock({*workload, spec, 42, true, nullptr});
  REQUIRE_MESSAGE(result.has_value(), (result ? "" : result.error().message));
  return std::move(*result);
}

double wait_s(const RunResult& result, std::size_t index) {
  const auto wait = waiting_ms(result.jobs[index]);
  REQUIRE(wait.has_value());
  return static_cast<double>(*wait) / 1000;
}

TEST_CASE("in a strict line nobody passes the head; with backfill any, whoever fits may") {
  const Trace trace = trace_of("1x2xA100", {job("a", 0, 10, 1), job("b", 1, 5, 2), job("c", 2, 1, 1)});
  const RunResult strict = run(trace, policy("fifo"));
  CHECK(wait_s(strict, 0) == 0);
  CHECK(wait_s(strict, 1) == 9);
  CHECK(wait_s(strict, 2) == 13);
  const RunResult any = run(trace, policy("fifo-bestfit"));
  CHECK(wait_s(any, 1) == 9);
  CHECK(wait_s(any, 2) == 0);
}

TEST_CASE("the oracle runs the shortest first, and an exit frees its GPU at the same instant") {
  const Trace trace = trace_of("1x2xA100", {job("a", 0, 10, 2), job("b", 1, 8, 2), job("c", 2, 3, 2)});
  const RunResult result = run(trace, policy("sjf-oracle"));
  CHECK(result.jobs[2].first_start_ms == 10'000);
  CHECK(result.jobs[1].first_start_ms == 13'000);
  CHECK(result.end_ms == 21'000);
  // The fleet was full from the first start to the last end.
  std::int64_t held = 0;
  for (std::size_t i = 0; i + 1 < result.fleet.size(); ++i) {
    held += result.fleet[i].allocated_gpu_milli * (result.fleet[i + 1].at_ms - result.fleet[i].at_ms);
  }
  CHECK(held == 2000 * 21'000);
}

TEST_CASE("a gang starts whole or not at all, and a job that fits no empty fleet is refused at once") {
  TraceJob gang = job("gang", 1, 5, 2);
  gang.workers = 2;
  const Trace trace = trace_of("2x2xA100", {job("a", 0, 10, 1), gang, job("huge", 2, 1, 3)});
  const RunResult result = run(trace, policy("fifo"));
  CHECK(wait_s(result, 1) == 9);
  CHECK(result.jobs[2].ending == Ending::kRefused);
  CHECK_FALSE(result.jobs[2].first_start_ms.has_value());
  CHECK(result.refused_because == std::map<std::string, std::int64_t>{{"would not fit the empty fleet", 1}});
  CHECK(terminal_table({result}).find("fifo refused 1: would not fit the empty fleet") != std::string::npos);
}

TEST_CASE("of alternative models the fleet needs to have one") {
  TraceJob either = job("either", 0, 5, 1);
  either.gpu_models = {"A100", "V100"};
  TraceJob other = job("other", 0, 5, 1);
  other.gpu_models = {"K80"};
  const Trace trace = trace_of("1x1xV100", {either, other});
  for (const char* name : {"fifo", "FGD", "berth"}) {
    CAPTURE(name);
    const RunResult result = run(trace, policy(name));
    CHECK(result.jobs[0].ending == Ending::kCompleted);
    CHECK(result.jobs[1].ending == Ending::kRefused);
  }
}

TEST_CASE("attained service: a job past its threshold gives way to a new one and goes on where it saved") {
  TraceJob old = job("old", 0, 100, 1);
  old.checkpoint = TraceCheckpoint{0, 0, 0};
  const RunResult result = run(trace_of("1x1xA100", {old, job("new", 20, 5, 1)}), attained_service("10"));
  CHECK(wait_s(result, 1) == 0);
  CHECK(result.jobs[0].finish_ms == 105'000);
  CHECK(result.jobs[0].preemptions == 1);
  CHECK(result.jobs[0].restarts == 1);
  CHECK(result.jobs[0].lost_gpu_milli_ms == 0);
}

TEST_CASE("within one level nobody is stopped; crossing the threshold is what lets the new one in") {
  TraceJob old = job("old", 0, 100, 1);
  old.checkpoint = TraceCheckpoint{0, 0, 0};
  const RunResult result = run(trace_of("1x1xA100", {old, job("new", 5, 3, 1)}), attained_service("10"));
  CHECK(result.jobs[1].first_start_ms == 10'000);
  CHECK(wait_s(result, 0) == 3);
}

// A holds the GPU from 0 on and is past its threshold, B never. Promoted after 30 s of waiting, A stops whoever runs,
// and nobody stops it again.
TEST_CASE("attained service: who has waited long enough goes first and stays") {
  std::vector<TraceJob> jobs = {job("a", 0, 40, 1)};
  for (int i = 0; i < 12; ++i) jobs.push_back(job("b" + std::to_string(i), 20 + 9 * i, 9, 1));
  for (TraceJob& one : jobs) one.checkpoint = TraceCheckpoint{0, 0, 0};
  PolicySpec spec = attained_service("10");
  const RunResult starved = run(trace_of("1x1xA100", jobs), spec);
  CHECK(wait_s(starved, 0) == 12 * 9);
  spec.promote_after_s = 30;
  const RunResult result = run(trace_of("1x1xA100", jobs), spec);
  CHECK(wait_s(result, 0) == 30);
  CHECK(result.jobs[0].preemptions == 1);
  CHECK(result.jobs[4].preemptions == 1);  // the one that ran when A's 30 s were over
}

TEST_CASE("a job without a checkpoint contract loses all its work when it is stopped") {
  const RunResult result =
      run(trace_of("1x1xA100", {job("old", 0, 100, 1), job("new", 20, 5, 1)}), attained_service("10"));
  CHECK(result.jobs[0].finish_ms == 125'000);
  CHECK(result.jobs[0].lost_gpu_milli_ms == 20'000 * 1000);
  CHECK(wait_s(result, 0) == 25);
}

TEST_CASE("saving and restarting cost what the contract says, and both count as waiting") {
  TraceJob old = job("old", 0, 100, 1);
  old.checkpoint = TraceCheckpoint{0, 3000, 4000};
  const RunResult result = run(trace_of("1x1xA100", {old, job("new", 20, 5, 1)}), attained_service("10"));
  CHECK(result.jobs[1].first_start_ms == 23'000);  // when the save is done
  CHECK(result.jobs[0].finish_ms == 112'000);      // 28 restart, 32 work again, 80 left
  CHECK(result.jobs[0].lost_gpu_milli_ms == 7000 * 1000);
  CHECK(wait_s(result, 0) == 12);
}

// A save that is still due after everything is over is not waited for: the run ends with its last change.
TEST_CASE("how often a job saves changes no figure of a run in which nobody is stopped") {
  const std::vector<OverlayQueue> queues = {{"lab", "", 8000, 12'000, 1}};
  for (const char* name : {"berth", "fifo"}) {
    CAPTURE(name);
    std::vector<RunResult> results;
    for (const std::int64_t interval_ms : {600'000, 6'000'000}) {
      Trace trace = trace_of("2x8xA100", {job("a", 0, 100, 4), job("b", 1, 50, 8), job("c", 2, 30, 1)});
      trace.jobs[1].workers = 2;
      for (TraceJob& one : trace.jobs) one.checkpoint = TraceCheckpoint{interval_ms, 1000, 1000};
      results.push_back(run(trace, policy(name), queues));
    }
    CHECK(results[0].end_ms == (std::string(name) == "fifo" ? 180'000 : 100'000));
    const auto measured = measure_runs(results);
    for (const Metric& metric : metrics()) {
      CAPTURE(metric.key);
      CHECK(metric.value(measured[0].measures) == metric.value(measured[1].measures));
    }
  }
}

TEST_CASE("a job over the max of its queue is no demand: no guarantee is violated by its waiting") {
  Trace trace = trace_of("2x8xA100", {job("a", 0, 100, 4), job("b", 1, 50, 8)});
  trace.jobs[1].workers = 2;
  const RunResult result = run(trace, policy("berth"), {{"lab", "", 8000, 12'000, 1}});
  CHECK(result.jobs[1].ending == Ending::kWaiting);
  CHECK(result.end_ms == 100'000);
  const RunMeasures measures = measure_runs({result})[0].measures;
  CHECK(measures.guarantee_violation_s == 0);
  CHECK(measures.waiting_at_end == 1);
  CHECK(measures.all.wait_s.mean == 0);
  CHECK(waiting_at_least_ms(result.jobs[1], result.end_ms) == 99'000);
}

TEST_CASE("two changes within a second are both in the figures of fairness") {
  // b waits from 0.5 s on, which is too soon for a sample of its own.
  TraceJob other = job("b", 0.5, 10, 2);
  other.tenant = "other";
  const RunResult result =
      run(trace_of("1x2xA100", {job("a", 0, 100, 2), other}), policy("fifo"), {{"other", "", 2000, {}, 1}});
  CHECK(measure_runs({result})[0].measures.guarantee_violation_s == doctest::Approx(99));
}

TEST_CASE("a guarantee is breached by a job that lies within it and waits, not by one that is larger") {
  const auto measured = [](double gpus) {
    TraceJob other = job("b", 0.5, 10, static_cast<std::int32_t>(gpus));
    other.tenant = "other";
    const RunResult result =
        run(trace_of("1x4xA100", {job("a", 0, 100, 4), other}), policy("fifo"), {{"other", "", 2000, {}, 1}});
    return measure_runs({result})[0].measures;
  };
  CHECK(measured(2).guarantee_breached_s == doctest::Approx(99.5));
  CHECK(measured(3).guarantee_breached_s == 0);
  CHECK(measured(3).guarantee_violation_s > 0);
}

TEST_CASE("fairness is over the tree: a parent's guarantee is violated though its child has none") {
  TraceJob other = job("b", 10, 10, 2);
  other.tenant = "vision";
  const RunResult result = run(trace_of("1x2xA100", {job("a", 0, 100, 2), other}), policy("fifo"),
                               {{"research", "", 2000, {}, 1}, {"vision", "research", {}, {}, 1}});
  CHECK(measure_runs({result})[0].measures.guarantee_violation_s == doctest::Approx(90));
}

TEST_CASE("the knobs of the product's preemption decide who is stopped, and when") {
  TraceJob owner = job("owner", 100, 50, 4);
  owner.tenant = "prod";
  const Trace trace = trace_of("1x8xA100", {job("borrower", 0, 1000, 8), owner});
  const std::vector<OverlayQueue> queues = {{"lab", "", {}, {}, 1}, {"prod", "", 8000, {}, 1}};
  const auto owner_starts_ms = [&](const std::string& preemption) {
    const auto spec = read_policy_text("p.yaml", "{name: p, order: berth, preemption: " + preemption + "}");
    REQUIRE_MESSAGE(spec.has_value(), (spec ? "" : spec.error().message));
    return run(trace, *spec, queues).jobs[1].first_start_ms;
  };
  CHECK(owner_starts_ms("{reclaim: true}") == 100'000);
  CHECK(owner_starts_ms("{min_runtime_s: 400}") == 400'000);
  CHECK(owner_starts_ms("{reclaim: false}") == 1'000'000);
  CHECK(owner_starts_ms("none") == 1'000'000);
}

TEST_CASE("with newest victims the product knows nothing of what is lost") {
  // The older one saves when it is asked to leave, the newer one never.
  TraceJob saves = job("saves", 0, 1000, 4);
  saves.checkpoint = TraceCheckpoint{0, 0, 0};
  TraceJob owner = job("owner", 100, 50, 4);
  owner.tenant = "prod";
  const Trace trace = trace_of("1x8xA100", {saves, job("loses", 10, 1000, 4), owner});
  const std::vector<OverlayQueue> queues = {{"lab", "", {}, {}, 1}, {"prod", "", 4000, {}, 1}};
  const auto lost = [&](const std::string& victims) {
    const auto spec = read_policy_text("p.yaml", "{name: p, order: berth, preemption: {victims: " + victims + "}}");
    REQUIRE_MESSAGE(spec.has_value(), (spec ? "" : spec.error().message));
    return run(trace, *spec, queues).jobs[1].lost_gpu_milli_ms;
  };
  CHECK(lost("least-lost") == 0);
  CHECK(lost("newest") == 4000 * 90'000);
}

TEST_CASE("the product's own cycle runs under the same clock") {
  const Trace trace = trace_of("1x2xA100", {job("a", 0, 10, 2), job("b", 1, 5, 2), job("c", 2, 1, 1)});
  const RunResult result = run(trace, policy("berth"));
  CHECK(result.jobs[0].finish_ms == 10'000);
  CHECK(result.jobs[1].ending == Ending::kCompleted);
  CHECK(result.jobs[2].ending == Ending::kCompleted);
  CHECK(result.end_ms == 16'000);
}

TEST_CASE("in order of arrival every pod is tried once and dropped if it does not fit") {
  const Trace trace = trace_of("1x1xA100", {share("pod-0", 600), share("pod-1", 500), share("pod-2", 400)});
  const auto workload = make_workload(trace, {});
  REQUIRE(workload.has_value());
  for (const char* name : {"FGD", "BestFit", "GpuPacking", "GpuClustering", "DotProd", "Random", "berth"}) {
    CAPTURE(name);
    const PolicySpec spec = policy(name);
    const auto result = run_in_order({*workload, spec, 42, false, nullptr}, {0, 1, 2, 1});
    REQUIRE(result.has_value());
    std::vector<std::int64_t> allocated;
    for (const ArrivalSample& sample : result->arrivals) allocated.push_back(sample.allocated_gpu_milli);
    CHECK(allocated == std::vector<std::int64_t>{600, 600, 1000, 1000});
    CHECK(result->arrivals.back().arrived_gpu_milli == 2000);
    CHECK(measure_runs({*result})[0].measures.refused == 2);
    CHECK(result->refused_because == std::map<std::string, std::int64_t>{{"no room when it came", 2}});
    std::vector<std::string> endings;
    const std::string csv = jobs_csv(measure_runs({*result}));
    const std::string titles = csv.substr(0, csv.find('\r'));
    const std::string head = "\"" + std::string(name) + "\",42,";
    CHECK(csv.find(head + "\"pod-0\",\"lab\",") != std::string::npos);
    for (std::size_t at = csv.find('\n') + 1; at < csv.size(); at = csv.find('\n', at) + 1) {
      const std::string row = csv.substr(at, csv.find('\r', at) - at);
      CHECK(std::count(row.begin(), row.end(), ',') == std::count(titles.begin(), titles.end(), ','));
      endings.push_back(row.substr(row.rfind(',') + 1));
    }
    CHECK(endings == std::vector<std::string>{"running", "refused", "running", "refused"});
  }
}

TEST_CASE("counting GPUs only, a gang needs no node of its own") {
  Trace trace = trace_of("2x2xA100", {job("a", 0, 10, 1), job("b", 1, 5, 3)});
  CHECK(run(trace, policy("fifo")).jobs[1].ending == Ending::kRefused);
  count_gpus_only(trace);
  CHECK(wait_s(run(trace, policy("fifo")), 1) == 0);
}

// On nodes that do not state their CPU, BestFit's scores lie far below 0.
TEST_CASE("best fit keeps room together where first fit does not") {
  const Trace trace =
      trace_of("2x4xA100", {job("a", 0, 100, 2), job("b", 1, 100, 3), job("c", 2, 100, 1), job("d", 3, 100, 2)});
  CHECK(wait_s(run(trace, policy("fifo-bestfit")), 3) == 0);
  CHECK(wait_s(run(trace, policy("fifo")), 3) == 97);
}

Trace crowded_trace() {
  std::vector<TraceJob> jobs;
  for (int i = 0; i < 60; ++i) jobs.push_back(job("j" + std::to_string(i), i % 7, 3 + i % 11, 1 + i % 4));
  return trace_of("3x4xA100", std::move(jobs));
}

TEST_CASE("a seed names one run; policies in parallel give what they give one after the other") {
  const Trace trace = crowded_trace();
  const auto workload = make_workload(trace, {});
  REQUIRE(workload.has_value());
  Experiment experiment{*workload, {policy("Random"), policy("las"), policy("berth")}, {1, 2, 3}, {}, 1};
  const auto serial = run_all(experiment, {});
  experiment.threads = 4;
  const auto parallel = run_all(experiment, {});
  REQUIRE((serial.has_value() && parallel.has_value()));
  REQUIRE(serial->size() == 9);
  for (std::size_t i = 0; i < serial->size(); ++i) {
    const RunResult& a = (*serial)[i];
    const RunResult& b = (*parallel)[i];
    CHECK(a.policy == b.policy);
    CHECK(a.seed == b.seed);
    CHECK(a.end_ms == b.end_ms);
    for (std::size_t k = 0; k < a.jobs.size(); ++k) CHECK(a.jobs[k].finish_ms == b.jobs[k].finish_ms);
    CHECK(a.gantt.size() == b.gantt.size());
  }
  std::vector<std::uint32_t> nodes[2];
  for (const GanttBar& bar : (*serial)[0].gantt) nodes[0].push_back(bar.node);
  const auto other = run_by_clock({*workload, experiment.policies[0], 2, true, nullptr});
  REQUIRE(other.has_value());
  for (const GanttBar& bar : other->gantt) nodes[1].push_back(bar.node);
  CHECK(nodes[0] != nodes[1]);  // Random with another seed goes elsewhere
}

TEST_CASE("no policy ever holds more than the fleet has, and all that can finish does") {
  const Trace trace = crowded_trace();
  for (const PolicySpec& spec : built_in_policies()) {
    CAPTURE(spec.name);
    const RunResult result = run(trace, spec);
    for (const FleetSample& sample : result.fleet) CHECK(sample.allocated_gpu_milli <= sample.capacity_gpu_milli);
    for (const JobOutcome& outcome : result.jobs) CHECK(outcome.ending == Ending::kCompleted);
  }
}

TEST_CASE("a policy file is strict") {
  const auto good = read_policy_text("p.yaml", "name: mine\norder: fifo\nscore: FGD\nbackfill: any\n");
  REQUIRE(good.has_value());
  CHECK(good->score == "FGD");
  CHECK_FALSE(good->head_blocks);
  const auto knobs = read_policy_text(
      "p.yaml", "name: calm\norder: berth\npreemption: {reclaim: true, preempt: false, min_runtime_s: 600}\n");
  REQUIRE(knobs.has_value());
  CHECK(knobs->scheduling.reclaim);
  CHECK_FALSE(knobs->scheduling.preempt);
  CHECK(knobs->scheduling.min_runtime_s == 600);
  for (const char* bad : {
           "name: a b\norder: fifo\n",                             // no sound name
           "name: x\norder: lottery\n",                            // no such order
           "name: x\norder: fifo\nscore: Magic\n",                 // no such score
           "name: x\norder: fifo\nspeed: 3\n",                     // unknown key
           "name: x\norder: fifo\norder: fifo\n",                  // twice
           "name: x\norder: fifo\npreemption: {reclaim: true}\n",  // nothing stops jobs here
           "name: x\norder: attained-service\npreemption: {thresholds_gpu_s: [5, 3]}\n",
           "name: x\norder: attained-service\npreemption: {thresholds_gpu_s: [5, 5]}\n",
           "name: x\norder: fifo\nconsolidation: always\n",
           "[]\n",
       }) {
    CAPTURE(bad);
    CHECK_FALSE(read_policy_text("p.yaml", bad).has_value());
  }
  CHECK_FALSE(find_policy("no-such-policy").has_value());
}

TEST_CASE("the progress line tells how far, how fast and how long") {
  CHECK(progress_line(0, 100, 0) == "[..............................]   0 %");
  CHECK(progress_line(50, 100, 10) == "[###############...............]  50 %   5 jobs/s   0:10 left");
  CHECK(progress_line(200, 100, 10) == "[##############################] 100 %   10 jobs/s");
}

// Every field that the issue names, in a summary made from real runs.
TEST_CASE("summary.json keeps its fields") {
  const Trace trace = crowded_trace();
  const auto workload = make_workload(trace, {});
  REQUIRE(workload.has_value());
  const auto runs = run_all({*workload, {policy("fifo"), policy("berth")}, {1, 2}, {}, 2}, {});
  REQUIRE(runs.has_value());
  const auto summary = boost::json::parse(summary_json(describe_input(trace), measure_runs(*runs))).as_object();
  CHECK(summary.at("schema").as_string() == kSummarySchema);
  REQUIRE(summary.at("runs").as_array().size() == 4);
  for (const char* key :
       {"policy", "seed", "gpu_allocation_pct", "gpu_allocation_at_100_pct", "fragmentation_pct", "mean_wait_s",
        "p99_wait_s", "max_wait_s", "mean_jct_s", "preemptions", "gpu_hours_lost", "guarantee_violation_s", "moves"}) {
    CAPTURE(key);
    for (const auto& one : summary.at("runs").as_array()) CHECK(one.as_object().contains(key));
  }
  CHECK(summary.at("runs").as_array()[0].as_object().at("mean_wait_s").is_number());
  CHECK_FALSE(summary.at("comparisons").as_array().empty());
}

TEST_CASE("the command line refuses what it does not know, and says so by its exit code") {
  const auto code = [](std::vector<std::string_view> arguments) { return simulate_main(arguments); };
  CHECK(code({"--help"}) == 0);
  CHECK(code({"--nonsense"}) == 2);
  CHECK(code({"--jobs", "no-such-file", "--nodes", "1x1xA100"}) != 0);
  CHECK(code({"--policy", "no-such-policy", "--jobs", "x", "--nodes", "y"}) == 2);
}

// What the command says on its error stream, with its exit code, for options after a small sound input.
class SmallInput {
 public:
  SmallInput() {
    std::filesystem::create_directories(directory_.path());
    write("jobs.csv", "job_id,submit_s,duration_s,gpus_per_worker,workers\njob-0,0,10,1,1\njob-1,1,10,1,1\n");
    write("order.csv", "seed,pod\n1,0\n1,1\n");
  }
  std::string write(const std::string& name, const std::string& text) {
    const auto path = directory_.path() / name;
    std::ofstream(path) << text;
    return path.string();
  }
  std::string path(const std::string& name) const { return (directory_.path() / name).string(); }
  int run(const std::vector<std::string>& options) const { return run_on("1x1xA100", options); }
  int run_on(const std::string& nodes, const std::vector<std::string>& options) const {
    std::vector<std::string> all = {"--jobs", path("jobs.csv"), "--policy", "fifo", "--nodes", nodes};
    all.insert(all.end(), options.begin(), options.end());
    const std::vector<std::string_view> views(all.begin(), all.end());
    return simulate_main(views);
  }
  // What the command says on its error stream where it refuses these nodes.
  std::string refusal_for(const std::string& nodes) const {
    const std::string file = path("errors");
    std::fflush(stderr);
    const int saved = dup(STDERR_FILENO);
    const int errors = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    dup2(errors, STDERR_FILENO);
    const int code = run_on(nodes, {});
    std::fflush(stderr);
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(errors);
    CHECK(code == 2);
    std::ifstream said(file);
    return {std::istreambuf_iterator<char>(said), std::istreambuf_iterator<char>()};
  }

 private:
  store::TemporaryDirectory directory_;
};

TEST_CASE("options that are empty, out of range or without meaning are refused") {
  const SmallInput input;
  CHECK(input.run({}) == 0);
  CHECK(input.run({"--seeds", "18446744073709551615"}) == 0);
  CHECK(input.run({"--seeds", "18446744073709551600-18446744073709551615"}) == 0);
  const std::string order = input.path("order.csv");
  const std::vector<std::vector<std::string>> refused = {{"--seeds", "0-18446744073709551615"},
                                                         {"--seeds", "1-10001"},
                                                         {"--seeds", "1-6000,10001-16000"},
                                                         {"--seeds", "18446744073709551616"},
                                                         {"--seeds", "5-4"},
                                                         {"--seeds", ""},
                                                         {"--seeds", "1,"},
                                                         {"--load", ""},
                                                         {"--days", ""},
                                                         {"--overlay", ""},
                                                         {"--report", ""},
                                                         {"--gpus-per-node", "-3"},
                                                         {"--gpus-per-node", "0"},
                                                         {"--gpus-of-silent-node", "-1"},
                                                         {"--threads", "-1"},
                                                         {"--threads", "0"},
                                                         {"--arrivals", order, "--load", "2"},
                                                         {"--arrivals", order, "--days", "0-1"},
                                                         {"--days", "5-6"}};
  for (const auto& options : refused) {
    CAPTURE(options.front());
    CAPTURE(options.back());
    CHECK(input.run(options) == 2);
  }
  CHECK(input.run({"--report", "/proc"}) == 1);
  CHECK(input.run({"--report", input.path("jobs.csv")}) == 1);
}

TEST_CASE("a file without a sound node says what is wrong with its first row") {
  SmallInput input;
  const std::string silent = input.write("silent.csv", "node,gpus\na,\nb,\n");
  const std::string header = input.write("header.csv", "node,gpus\n");
  const std::string large = input.write("large.csv", "node,gpus\na,24\n");
  CHECK(input.refusal_for(silent) == "berth simulate: --nodes: " + silent +
                                         " has no sound row of a node; 2 are bad, the first in line 2: gpus: empty; "
                                         "--gpus-of-silent-node N says how many such a node has\n");
  CHECK(input.refusal_for(header) == "berth simulate: --nodes: " + header + " has no sound row of a node\n");
  CHECK(input.refusal_for(large) == "berth simulate: --nodes: " + large +
                                        " has no sound row of a node; 1 is bad, the first in line 2: more than 16 GPUs "
                                        "in a node\n");
}

TEST_CASE("when the trace begins changes no figure") {
  SmallInput input;
  const std::string overlay = input.write(
      "o.yaml", "queues:\n  - {name: a, guaranteed_gpus: 1}\n  - {name: b}\njobs:\n  - set: {time_limit_s: 5}\n");
  std::vector<boost::json::object> runs;
  for (const std::int64_t begin : {0L, 1'700'000'000L}) {
    std::string rows = "job_id,tenant,submit_s,duration_s,gpus_per_worker,workers\n";
    for (std::int64_t i = 0; i < 8; ++i) {
      const std::string number = std::to_string(i);
      rows += "j" + number + "," + (i % 3 == 2 ? "a" : "b") + "," + std::to_string(begin + 7 * i) + ",40,1,1\n";
    }
    const std::string jobs = input.write("jobs" + std::to_string(begin) + ".csv", rows);
    const std::string out = input.path("out" + std::to_string(begin));
    const std::vector<std::string_view> arguments = {"--jobs", jobs,        "--nodes", "1x2xA100", "--policy",
                                                     "fifo",   "--overlay", overlay,   "--report", out};
    REQUIRE(simulate_main(arguments) == 0);
    std::ifstream file(out + "/summary.json");
    const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    const auto summary = boost::json::parse(text);
    runs.push_back(summary.at("runs").at(0).as_object());
    runs.back().erase("computed_in_s");
    CHECK(text.find("time limit below the run time: lifted to it") != std::string::npos);
    CHECK((text.find("1700000000 s after the trace's own") != std::string::npos) == (begin > 0));
  }
  CHECK(runs[0].at("guarantee_violation_s").to_number<double>() > 0);
  CHECK(boost::json::serialize(runs[0]) == boost::json::serialize(runs[1]));
}

TEST_CASE("a report tells of all its sources, and of no nodes where GPUs are only counted") {
  const SmallInput input;
  const std::string out = input.path("out");
  REQUIRE(input.run({"--arrivals", input.path("order.csv"), "--gpus-only", "--report", out}) == 0);
  std::ifstream file(out + "/summary.json");
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const auto summary = boost::json::parse(text).as_object();
  const auto& described = summary.at("input").as_object();
  CHECK(described.at("nodes").is_null());
  CHECK(described.at("sources").as_array().size() == 2);
  CHECK(described.at("sources").as_array()[1].as_string().find("order of arrival, 2 arrivals, 1 seeds") !=
        boost::json::string::npos);
}

TEST_CASE("classes that the product does not know are stated, and so is what the overlay gave to the jobs that ran") {
  SmallInput input;
  const std::string jobs = input.write("classes.csv",
                                       "job_id,submit_s,duration_s,gpus_per_worker,workers,job_class\n"
                                       "a,0,1,1,1,train\nb,1,1,1,1,batch\nc,2,1,1,1,\nd,90000,1,1,1,train\n");
  const std::string overlay = input.write("o.yaml", "jobs:\n  - set: {priority: 5}\n");
  const std::string out = input.path("out");
  const std::vector<std::string_view> arguments = {"--jobs",   jobs,    "--nodes",   "1x1xA100", "--days",   "0-1",
                                                   "--policy", "berth", "--overlay", overlay,    "--report", out};
  REQUIRE(simulate_main(arguments) == 0);
  std::ifstream file(out + "/summary.json");
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const auto described = boost::json::parse(text).at("input");
  CHECK(described.at("overlay_taken").at(0).at("count") == 3);
  int stated = 0;
  for (const auto& one : described.at("defaults_taken").as_array()) {
    if (one.at("text").as_string().find("class of a job") != boost::json::string::npos) stated += 1;
    if (one.at("text").as_string().find("class of a job is none of") != boost::json::string::npos) {
      CHECK(one.at("count") == 1);
    }
  }
  CHECK(stated == 2);
}

TEST_CASE("jobs of a million workers that fit nowhere cost no memory") {
  std::vector<TraceJob> jobs;
  for (int i = 0; i < 2000; ++i) {
    jobs.push_back(job("j" + std::to_string(i), 0, 1, 1));
    jobs.back().workers = 1'000'000;
  }
  const Trace trace = trace_of("1x1xA100", std::move(jobs));
  const auto workload = make_workload(trace, {});
  REQUIRE(workload.has_value());
  CHECK(workload->mix.front().count == 2'000'000'000);
}

TEST_CASE("a policy file that cannot be used says what is wrong with it") {
  const auto refusal = [](const std::string& text) {
    const auto read = read_policy_text("p.yaml", text);
    return read ? std::string() : read.error().message;
  };
  CHECK(refusal("order: fifo\n").find("name is missing") != std::string::npos);
  CHECK(refusal("name: x\n").find("order is missing") != std::string::npos);
  CHECK(refusal("- name: x\n  order: fifo\n").find("one file holds one policy") != std::string::npos);
  // A part that an order cannot have is refused with what it can have.
  const auto names = [&](const std::string& text, const char* what) {
    CAPTURE(text);
    CHECK(refusal(text).find(what) != std::string::npos);
  };
  names("name: x\norder: fifo\nconsolidation: any\n", "\"any\" is not supported; only none");
  names("name: x\norder: berth\nconsolidation: {budget: 3}\n", "consolidation is not a plain value");
  names("name: x\norder: fifo\nscore: Magic\n", "there are FirstFit, Random, DotProd");
  names("name: x\norder: berth\nscore: FGD\n", "only berth and BestFit are possible");
  names("name: x\norder: berth\nbackfill: none\n", "how many blocked jobs hold nodes");
  names("name: x\norder: berth\nbackfill: -1\n", "how many blocked jobs hold nodes");
  names("name: x\norder: berth\nbackfill: 1001\n", "up to 1000");
  names("name: x\norder: berth\nbackfill: {holds: 1, after: 3}\n", "unknown key \"after\"");
  names("name: x\norder: berth\npreemption: {victims: oldest}\n", "neither least-lost nor newest");
  names("name: x\norder: fifo\nbackfill: 2\n", "neither none nor any");
  names("name: x\norder: shortest\npreemption: {reclaim: true}\n", "only none is possible");
  names("name: x\norder: attained-service\npreemption: none\n", "attained service without it is fifo");
}

TEST_CASE("every order may name all five parts of a policy") {
  const auto read = [](const std::string& text) {
    const auto spec = read_policy_text("p.yaml", "name: x\n" + text);
    REQUIRE_MESSAGE(spec.has_value(), (spec ? "" : spec.error().message));
    return *spec;
  };
  const PolicySpec line = read("order: shortest\nscore: FGD\nbackfill: any\npreemption: none\nconsolidation: none\n");
  CHECK(line.order == PolicyOrder::kShortest);
  CHECK(line.score == "FGD");
  CHECK_FALSE(line.head_blocks);
  const PolicySpec las = read(
      "order: attained-service\nscore: BestFit\nbackfill: any\npreemption: {thresholds_gpu_s: [60]}\nconsolidation: "
      "none\n");
  CHECK(las.thresholds_gpu_s == std::vector<std::int64_t>{60});
  CHECK(read("order: attained-service\npreemption: {thresholds_gpu_s: [60], promote_after_s: 7}\n").promote_after_s ==
        7);
  const PolicySpec own =
      read("order: berth\nscore: berth\nbackfill: 3\npreemption: {reclaim: false}\nconsolidation: none\n");
  CHECK(own.scheduling.backfill_holds == 3);
  CHECK_FALSE(own.scheduling.reclaim);
  CHECK(own.scheduling.preempt);
  CHECK(own.scheduling.score == NodeScore::kFragmentation);
  CHECK(read("order: berth\nscore: BestFit\n").scheduling.score == NodeScore::kBestFit);
  CHECK(read("order: berth\n").scheduling.score == SchedulingConfig().score);
  CHECK(read("order: berth\nbackfill: any\n").scheduling.backfill_holds == 0);
  CHECK(read("order: berth\nbackfill: {holds: 2, hold_after_s: 60}\n").scheduling.hold_after_s == 60);
}

// --- berth's own log ---

std::vector<Event> logged_events() {
  ClusterConfig config = default_cluster_config();
  config.queues.front().guaranteed.gpu_milli = 500;
  config.queues.front().policy = QueuePolicy::kStrict;
  config.scheduling.backfill_holds = 4;
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
  // What a replay does not know is said, of the jobs that are run.
  std::int64_t set_aside = 0;
  for (const auto& [text, count] : logged->trace.defaults_taken) {
    if (text.find("set aside") != std::string::npos) set_aside += count;
  }
  CHECK(set_aside == 2);
  REQUIRE(logged->trace.notes.size() == 2);
  CHECK(logged->trace.notes[0].find("guaranteed and max GPUs: 1; the rest") != std::string::npos);
  CHECK(logged->trace.notes[1].find("knobs of scheduling are set aside") != std::string::npos);
  CHECK(fleet_gpu_milli(logged->trace) == 2000);
  REQUIRE(logged->queues.size() == 1);
  CHECK(logged->queues[0].guaranteed_milli == 500);
}

// --- against the public traces ---

std::string public_file(const std::string& path) {
  const char* folder = std::getenv("BERTH_TRACES");
  const std::string file = std::string(folder == nullptr ? "../shared/traces" : folder) + "/" + path;
  if (std::filesystem::exists(file)) return file;
  MESSAGE("SKIPPED, because the public trace is absent: " << file << " (set BERTH_TRACES to the folder of traces)");
  return {};
}

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
