#include "sim/trace/shape.h"

#include <doctest/doctest.h>

#include "sim/trace/arrivals.h"
#include "sim/trace/overlay.h"
#include "sim/trace/read_trace.h"

namespace berth::sim {
namespace {

constexpr std::int64_t kDayMs = 86'400'000;

TraceJob job_of(const std::string& id, std::int64_t total_gpus, std::optional<std::int64_t> submit_ms = 0) {
  TraceJob job;
  job.id = id;
  job.gpus_per_worker = total_gpus;
  job.submit_ms = submit_ms;
  job.duration_ms = 1000;
  return job;
}

TEST_CASE("splitting never changes a job's total, and no worker is larger than a node") {
  for (std::int64_t total = 0; total <= 300; ++total) {
    for (const std::int64_t node : {1, 2, 4, 8}) {
      Trace trace;
      trace.jobs.push_back(job_of("j", total));
      split_workers(trace, node);
      CHECK(trace.jobs[0].total_gpu_milli() == total * 1000);
      CHECK(trace.jobs[0].gpus_per_worker <= node);
    }
  }
}

TEST_CASE("splitting follows its three rules and counts each") {
  Trace trace;
  for (const std::int64_t total : {1, 8, 16, 12, 11}) trace.jobs.push_back(job_of(std::to_string(total), total));
  trace.jobs.push_back(job_of("stated", 3));
  trace.jobs.back().workers = 5;
  trace.jobs[2].cpu_milli = 3001;
  split_workers(trace, 8);
  CHECK(trace.jobs[0].workers == 1);
  CHECK(trace.jobs[1].workers == 1);
  CHECK(trace.jobs[2].workers == 2);
  CHECK(trace.jobs[2].cpu_milli == 1501);
  CHECK(trace.jobs[3].workers == 2);
  CHECK(trace.jobs[3].gpus_per_worker == 6);
  CHECK(trace.jobs[4].workers == 11);
  CHECK(trace.jobs[5].workers == 5);
  REQUIRE(trace.defaults_taken.size() == 3);
  std::int64_t counted = 0;
  for (const auto& [text, count] : trace.defaults_taken) counted += count;
  CHECK(counted == 5);
}

TEST_CASE("a window keeps [A, B) and moves time 0 to A") {
  Trace trace;
  trace.jobs = {job_of("before", 1, 22 * kDayMs - 1), job_of("first", 1, 22 * kDayMs),
                job_of("last", 1, 58 * kDayMs - 1), job_of("after", 1, 58 * kDayMs), job_of("silent", 1, {})};
  const auto window = parse_day_window("22-58");
  REQUIRE(window);
  cut_window(trace, *window);
  REQUIRE(trace.jobs.size() == 2);
  CHECK(trace.jobs[0].submit_ms == 0);
  CHECK(trace.rows_left_out.at("jobs submitted outside of days 22-58") == 3);
  for (const char* text : {"", "22", "58-22", "5-5", "-1-5", "1-x", "nan-3", "0-1e9"}) {
    CHECK_FALSE(parse_day_window(text).has_value());
  }
  CHECK(parse_day_window("0.5-1.25")->to_ms == kDayMs * 5 / 4);
}

TEST_CASE("scaling the load divides submission times") {
  Trace trace;
  trace.jobs = {job_of("a", 1, 1300), job_of("b", 1, {})};
  scale_load(trace, parse_load_milli("1.3").value());
  CHECK(trace.jobs[0].submit_ms == 1000);
  CHECK_FALSE(trace.jobs[1].submit_ms.has_value());
  for (const char* text : {"0", "-1", "", "inf", "1001", "1,3"}) CHECK_FALSE(parse_load_milli(text).has_value());
}

TEST_CASE("a fleet by its shape") {
  Trace trace;
  REQUIRE(add_fleet_shape("56x8xV100,2x4xT4", trace));
  REQUIRE(trace.nodes.size() == 58);
  CHECK(fleet_gpu_milli(trace) == (56 * 8 + 2 * 4) * 1000);
  CHECK(trace.nodes[57].gpu_model == "T4");
  CHECK(trace.nodes[0].name != trace.nodes[56].name);
  for (const char* text :
       {"", "56x8", "0x8xV100", "x8xV100", "56x8x", "56x8xV100,", "2x0xV100", "-1x8xV100", "9999999x8xV100"}) {
    Trace refused;
    CHECK_FALSE(add_fleet_shape(text, refused).has_value());
  }
}

TEST_CASE("a fleet of too many nodes is refused for that, not for its form") {
  Trace trace;
  const auto refused = add_fleet_shape("600000x1xT4,400001x1xT4", trace);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().message.find("more than 1000000 nodes in all") != std::string::npos);
}

TEST_CASE("jobs that no run over time can use go, and are counted; silent tenants get the stated one") {
  Trace trace;
  trace.jobs = {job_of("a", 1), job_of("b", 1, {}), job_of("c", 1)};
  trace.jobs[2].duration_ms.reset();
  keep_timed_jobs(trace);
  CHECK(trace.jobs.size() == 1);
  CHECK(trace.rows_left_out.at("jobs without a submission time") == 1);
  CHECK(trace.rows_left_out.at("jobs without a duration") == 1);
  fill_tenants(trace, "everyone");
  CHECK(trace.jobs[0].tenant == "everyone");
  CHECK(trace.defaults_taken.at("tenant of a job not stated: everyone") == 1);
}

TEST_CASE("an order of arrival names pods by the number at the end of their ids, as often as they come") {
  Trace trace;
  trace.jobs = {job_of("openb-pod-0003", 1), job_of("openb-pod-0000", 1)};
  const auto arrivals = read_arrivals_text("a", "seed,pod\n42,3\n42,0\n42,3\n43,0\n", {});
  REQUIRE(arrivals);
  CHECK(arrival_order(trace, *arrivals, 42).value() == std::vector<std::size_t>{0, 1, 0});
  CHECK(arrival_order(trace, *arrivals, 43).value() == std::vector<std::size_t>{1});
  CHECK_FALSE(arrival_order(trace, *arrivals, 44).has_value());
  CHECK_FALSE(arrival_order(trace, *read_arrivals_text("a", "seed,pod\n1,7\n", {}), 1).has_value());
  CHECK_FALSE(read_arrivals_text("a", "seed,pod\n42,x\n", {}).has_value());
  CHECK_FALSE(read_arrivals_text("a", "seed\n42\n", {}).has_value());
}

constexpr const char* kOverlay = R"(
jobs:
  - match: {job_class: training, min_gpus: 8}
    set: {priority: 100, checkpoint: {interval_s: 600, cost_s: 30, restart_s: 60.5}}
  - match: {id: small}
    set: {tenant: team-b, priority: -5, time_limit_s: 90}
queues:
  - {name: team-b, parent: research, guaranteed_gpus: 64, max_gpus: 128, weight: 2}
  - {name: research}
)";

TEST_CASE("an overlay supplies what it says, to the jobs it says, and the trace counts it") {
  const auto overlay = read_overlay_text("overlay.yaml", kOverlay, {});
  REQUIRE_MESSAGE(overlay, (overlay ? "" : overlay.error().message));
  Trace trace;
  trace.jobs = {job_of("big", 8), job_of("small", 1)};
  trace.jobs[0].job_class = trace.jobs[1].job_class = "training";
  REQUIRE(check_overlay(*overlay, trace).has_value());
  apply_overlay(*overlay, trace);
  CHECK(trace.jobs[0].priority == 100);
  CHECK(trace.jobs[0].checkpoint == TraceCheckpoint{600'000, 30'000, 60'500});
  CHECK(trace.jobs[0].tenant.empty());
  CHECK(trace.jobs[1].priority == -5);
  CHECK(trace.jobs[1].tenant == "team-b");
  CHECK(trace.jobs[1].time_limit_ms == 90'000);
  CHECK_FALSE(trace.jobs[1].checkpoint.has_value());
  CHECK(trace.overlay_taken.at("priority supplied") == 2);
  CHECK(trace.overlay_taken.at("tenant supplied") == 1);
  REQUIRE(overlay->queues.size() == 2);
  CHECK(overlay->queues[0].guaranteed_milli == 64'000);
  CHECK(overlay->queues[0].weight == 2);
  CHECK_FALSE(overlay->queues[1].max_milli.has_value());
}

TEST_CASE("an overlay CSV sets jobs by id") {
  const auto overlay = read_overlay_text("o.csv", "job_id,priority,checkpoint_interval_s\nbig,7,\nsmall,,60\n", {});
  REQUIRE(overlay);
  Trace trace;
  trace.jobs = {job_of("big", 8), job_of("small", 1)};
  REQUIRE(check_overlay(*overlay, trace).has_value());
  apply_overlay(*overlay, trace);
  CHECK(trace.jobs[0].priority == 7);
  CHECK_FALSE(trace.jobs[0].checkpoint.has_value());
  CHECK(trace.jobs[1].checkpoint->interval_ms == 60'000);
  CHECK_FALSE(read_overlay_text("o.csv", "job_id,prio\nbig,7\n", {}).has_value());
  CHECK_FALSE(read_overlay_text("o.csv", "job_id,priority\nbig,7\nbig,8\n", {}).has_value());
  CHECK_FALSE(read_overlay_text("o.csv", "job_id,priority\nbig,1e3\n", {}).has_value());
}

TEST_CASE("an overlay that matches no job is refused") {
  Trace trace;
  trace.jobs = {job_of("big", 8), job_of("small", 1)};
  const auto refusal = [&trace](const std::string& name, const std::string& text) {
    const auto overlay = read_overlay_text(name, text, {});
    REQUIRE(overlay);
    const auto checked = check_overlay(*overlay, trace);
    return checked ? std::string() : checked.error().message;
  };
  CHECK(refusal("o.yaml", "jobs:\n  - {match: {id: big}, set: {priority: 1}}\n").empty());
  CHECK(refusal("o.yaml", "jobs:\n  - set: {priority: 1}\n  - {match: {tenant: nobody}, set: {priority: 1}}\n") ==
        "o.yaml: jobs[1] matches no job of the trace");
  CHECK(refusal("o.csv", "job_id,priority\nbig,1\nbig2,1\nbig3,1\n") ==
        "o.csv: the trace has no job \"big2\", nor 1 others named here");
}

TEST_CASE("queues are checked against the fleet and the jobs") {
  Trace trace;
  trace.jobs = {job_of("a", 1)};
  trace.jobs[0].tenant = "vision";
  REQUIRE(add_fleet_shape("2x8xA100", trace).has_value());
  CHECK(
      check_queues({{"research", "", 16'000, {}, 1}, {"vision", "research", 16'000, {}, 1}}, true, trace).has_value());
  CHECK(trace.notes.empty());
  CHECK_FALSE(check_queues({{"vision", "", 17'000, {}, 1}}, false, trace).has_value());
  CHECK_FALSE(check_queues({{"vision", "", {}, {}, 1}, {"nlp", "vision", {}, {}, 1}}, false, trace).has_value());
  // Too much together, and a queue without jobs: said, and refused with --strict.
  const std::vector<OverlayQueue> doubtful = {{"vision", "", 10'000, {}, 1}, {"other", "", 10'000, {}, 1}};
  CHECK_FALSE(check_queues(doubtful, true, trace).has_value());
  CHECK(check_queues(doubtful, false, trace).has_value());
  CHECK(trace.notes.size() == 2);
}

TEST_CASE("what was assumed is counted for the jobs that are run, not for those left out") {
  Trace trace;
  const std::string text =
      "job_id,submit_s,duration_s,gpus_per_worker,workers\na,1,1,1,1\nb,90000,1,1,1\na,2,1,1,1\nc,x,1,1,1\n";
  REQUIRE(read_jobs_text("jobs.csv", text, {}, trace).has_value());
  CHECK(trace.bad_rows.total == 2);
  CHECK(trace.defaults_taken.at("CPU of a job not stated: it asks for none") == 2);
  cut_window(trace, *parse_day_window("0-1"));
  CHECK(trace.defaults_taken.at("CPU of a job not stated: it asks for none") == 1);
  cut_window(trace, *parse_day_window("5-6"));
  CHECK(trace.defaults_taken.empty());
}

TEST_CASE("an overlay with anything unknown, malformed or dangerous is refused whole") {
  for (const char* text :
       {"jobs:\n  - match: {jobclass: x}\n    set: {priority: 1}\n", "jobs:\n  - set: {priority: high}\n",
        "jobs:\n  - match: {id: x}\n", "jobs: {a: 1}\n", "queues:\n  - {guaranteed_gpus: 1}\n",
        "queues:\n  - {name: q, weight: 0}\n", "queues:\n  - {name: q, guaranteed_gpus: -1}\n",
        "queues:\n  - {name: q, name: r}\n", "queues:\n  - {name: q}\n  - {name: q}\n", "a: &x 1\nb: *x\n",
        "jobs: !!python/object x\n", "---\na: 1\n---\nb: 2\n", "", "[1,2]", "unknown: 1\n", "a: [", "\t- x",
        "jobs:\n  - set: {priority: [1]}\n", "? {a: b}\n: c\n"}) {
    CAPTURE(text);
    CHECK_FALSE(read_overlay_text("o.yaml", text, {}).has_value());
  }
  CHECK_FALSE(read_overlay_text("o.yaml", std::string(100, '['), {}).has_value());
}

}  // namespace
}  // namespace berth::sim
