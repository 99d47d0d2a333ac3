// What the command takes: options, policy files, progress, and the report that it writes.

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "sim/report/summary.h"
#include "sim/simulate/progress_bar.h"
#include "sim/simulate/runs.h"
#include "sim/simulate/simulate_fixture.h"
#include "sim/simulate/simulate_main.h"
#include "sim/simulate/trial_config.h"
#include "sim/trace/arrivals.h"
#include "store/temporary_directory.h"

namespace berth::sim {
namespace {

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

// Every field that docs/simulate.md names, in a summary made from real runs.
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

// The error output and exit code of the command for options after a small valid input.
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
  // Returns the error output of the command if it refuses these nodes.
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

TEST_CASE("a configuration is tried before it is applied: its scheduling is a policy, its queues are the queues") {
  SmallInput input;
  const std::string good = input.write("cluster.yaml",
                                       "cluster: next\nqueues:\n  default: {guaranteed: {gpus: 1}}\n"
                                       "scheduling: {score: best-fit, min_runtime: 5m, consolidations_per_hour: 3}\n");
  const auto trial = read_trial_config(good);
  REQUIRE(trial.has_value());
  CHECK(trial->policy.name == "next");
  CHECK(trial->policy.order == PolicyOrder::kBerth);
  CHECK(trial->policy.scheduling.score == NodeScore::kBestFit);
  CHECK(trial->policy.scheduling.min_runtime_s == 300);
  CHECK(trial->policy.scheduling.consolidations_per_hour == 3);
  REQUIRE(trial->queues.size() == 1);
  CHECK(trial->queues[0].guaranteed_milli == 1000);
  CHECK(input.run({"--config", good}) == 0);

  CHECK(input.run({"--config", input.path("missing.yaml")}) != 0);
  const std::string mistaken = input.write("mistaken.yaml", "queues: {default: {}}\nscheduling: {score: best}\n");
  CHECK(input.run({"--config", mistaken}) == 2);
  const std::string same = input.write("same.yaml", "cluster: fifo\nqueues: {default: {}}\n");
  CHECK(input.run({"--config", same}) == 2);  // two policies of one name
  const std::string large = input.write("large.yaml", "queues: {default: {guaranteed: {gpus: 9}}}\n");
  CHECK(input.run({"--config", large}) == 2);  // the fleet has one GPU
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
  names("name: x\norder: fifo\nconsolidation: any\n", "consolidation is none or, with order berth alone");
  names("name: x\norder: fifo\nconsolidation: {consolidations_per_hour: 3}\n",
        "consolidation is none or, with order berth alone");
  names("name: x\norder: berth\nconsolidation: {budget: 3}\n", "unknown key \"budget\"");
  names("name: x\norder: berth\nconsolidation: {consolidations_per_hour: -3}\n", "not a whole number up to 100000");
  names("name: x\norder: fifo\nscore: Magic\n", "there are FirstFit, Random, DotProd");
  names("name: x\norder: berth\nscore: FGD\n", "only berth and BestFit are possible");
  names("name: x\norder: berth\nbackfill: none\n", "how many blocked jobs hold nodes");
  names("name: x\norder: berth\nbackfill: -1\n", "how many blocked jobs hold nodes");
  names("name: x\norder: berth\nbackfill: 1001\n", "up to 1000");
  names("name: x\norder: berth\nbackfill: {backfill_reservations: 1, after: 3}\n", "unknown key \"after\"");
  names("name: x\norder: berth\nbackfill: {holds: 1}\n", "backfill: \"holds\" is now \"backfill_reservations\"");
  names("name: x\norder: berth\nbackfill: {hold_after_s: 1}\n", "\"hold_after_s\" is now \"backfill_after_s\"");
  names("name: x\norder: berth\nconsolidation: {moves_per_hour: 1}\n",
        "\"moves_per_hour\" is now \"consolidations_per_hour\"");
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
  CHECK(own.scheduling.backfill_reservations == 3);
  CHECK(own.scheduling.consolidations_per_hour == 0);
  CHECK(read("order: berth\nconsolidation: {consolidations_per_hour: 7}\n").scheduling.consolidations_per_hour == 7);
  CHECK_FALSE(own.scheduling.reclaim);
  CHECK(own.scheduling.preempt);
  CHECK(own.scheduling.score == NodeScore::kFragmentation);
  CHECK(read("order: berth\nscore: BestFit\n").scheduling.score == NodeScore::kBestFit);
  CHECK(read("order: berth\n").scheduling.score == SchedulingConfig().score);
  CHECK(read("order: berth\nbackfill: any\n").scheduling.backfill_reservations == 0);
  CHECK(
      read("order: berth\nbackfill: {backfill_reservations: 2, backfill_after_s: 60}\n").scheduling.backfill_after_s ==
      60);
}

}  // namespace
}  // namespace berth::sim
