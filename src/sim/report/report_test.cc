// The report on results that are made up, and say so on the page: a toy queue of one kind of GPU drawn from a seed.
// With BERTH_REPORT_SAMPLE set to a folder, the sample report is left there to be looked at in a browser.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/random.h"
#include "sim/report/curves.h"
#include "sim/report/downsample.h"
#include "sim/report/escape.h"
#include "sim/report/headline.h"
#include "sim/report/page_data.h"
#include "sim/report/report_page.h"
#include "sim/report/summary.h"
#include "sim/report/write_report.h"
#include "sim/trace/csv.h"

namespace berth::sim {
namespace {

namespace json = boost::json;

constexpr std::int64_t kHourMs = 3'600'000;
constexpr std::int64_t kNodes = 96;

// Names that have done harm elsewhere.
constexpr std::array kHostile = {"<script>alert(1)</script>",
                                 "\"><img src=x onerror=alert(1)>",
                                 "{{7*7}}",
                                 "=cmd|'/C calc'!A0",
                                 "+1+1",
                                 "@SUM(A1)",
                                 "a\r\nb",
                                 "\x1b[31mred",
                                 "\u202Egpj",
                                 "zero\u200Bwidth",
                                 "../..",
                                 "'; DROP TABLE",
                                 "\u2028line",
                                 "</script><script>alert(2)//",
                                 "-2+3",
                                 "\t=1",
                                 "%n%n"};

struct FakeFleet {
  std::vector<std::int64_t> free_at = std::vector<std::int64_t>(static_cast<std::size_t>(kNodes), 0);
};

JobOutcome fake_job(Random& random, int index, const RunResult& run, std::int64_t delay_ms, FakeFleet& fleet,
                    std::vector<GanttBar>& bars) {
  JobOutcome job;
  job.id = "job-" + std::to_string(index);
  const auto queue = std::min(random.below(run.queues.size()), random.below(run.queues.size()));
  job.queue = run.queues[queue];
  job.user = "u" + std::to_string(random.below(40));
  job.job_class = random.chance(700) ? "training" : "inference";
  job.gpu_milli = std::array<std::int64_t, 6>{500, 1000, 1000, 2000, 8000, 8000}[random.below(6)];
  job.submit_ms = index * 4 * 60'000 + random.between(0, 200'000);
  job.useful_ms = 60'000 + static_cast<std::int64_t>(std::exp(static_cast<double>(random.below(1000)) / 110.0) * 9000);
  const auto node = std::min_element(fleet.free_at.begin(), fleet.free_at.end());
  const std::int64_t start = std::max(job.submit_ms, *node) + (random.chance(600) ? 0 : random.between(0, delay_ms));
  job.first_start_ms = start;
  job.finish_ms = start + job.useful_ms;
  job.preemptions = random.chance(80) ? 1 : 0;
  job.lost_gpu_milli_ms = job.preemptions * 900 * job.gpu_milli * 1000;
  job.job_end = random.chance(990) ? JobEnd::kCompleted : JobEnd::kRefused;
  *node = *job.finish_ms;
  bars.push_back({static_cast<std::uint32_t>(node - fleet.free_at.begin()), static_cast<std::uint32_t>(queue),
                  std::max<std::int64_t>(job.gpu_milli, 6000), start, *job.finish_ms});
  return job;
}

void fake_series(Random& random, double level, RunResult& run) {
  for (std::int64_t at = 0; at < run.end_ms; at += kHourMs / 3) {
    const double day = std::sin(static_cast<double>(at) / (24.0 * kHourMs) * 2 * 3.14159);
    const double noise = static_cast<double>(random.between(-40, 40)) / 1000;
    const double busy = std::clamp(level + 0.08 * day + noise, 0.0, 1.0);
    FleetSample sample;
    sample.at_ms = at;
    sample.capacity_gpu_milli = run.capacity_gpu_milli;
    sample.allocated_gpu_milli = static_cast<std::int64_t>(busy * static_cast<double>(run.capacity_gpu_milli));
    sample.fragmented_gpu_milli = (run.capacity_gpu_milli - sample.allocated_gpu_milli) / 2;
    sample.waiting_jobs = std::max<std::int64_t>(0, static_cast<std::int64_t>(120 * (busy - level + 0.05) * 10));
    sample.waiting_gpu_milli = sample.waiting_jobs * 3000;
    run.fleet.push_back(sample);
    const std::int64_t half = run.capacity_gpu_milli / 2;
    const std::int64_t tilt = random.between(0, static_cast<std::int64_t>(static_cast<double>(half) * (1 - level)));
    run.fairness.push_back({at,
                            run.capacity_gpu_milli,
                            {{half + tilt, run.capacity_gpu_milli, half, 1}, {half - tilt, half, half / 2, 1}}});
  }
}

void fake_arrivals(Random& random, double level, RunResult& run) {
  for (std::int64_t arrived = 0; arrived < run.capacity_gpu_milli * 13 / 10; arrived += 3000) {
    const auto ceiling = static_cast<std::int64_t>(level * static_cast<double>(run.capacity_gpu_milli));
    const std::int64_t allocated = std::min(arrived * 995 / 1000, ceiling - random.between(0, 4000));
    run.arrivals.push_back({arrived, allocated, (run.capacity_gpu_milli - allocated) / 20 + arrived / 40});
  }
}

RunResult fake_run(const std::string& policy, std::uint64_t seed, double level, std::int64_t delay_ms,
                   const std::vector<std::string>& queues) {
  Random random(seed * 1000 + policy.size());
  RunResult run;
  run.policy = policy;
  run.seed = seed;
  run.capacity_gpu_milli = kNodes * 8000;
  run.queues = queues;
  run.node_gpu_milli.assign(static_cast<std::size_t>(kNodes), 8000);
  FakeFleet fleet;
  for (int i = 0; i < 2500; ++i) run.jobs.push_back(fake_job(random, i, run, delay_ms, fleet, run.gantt));
  for (const JobOutcome& job : run.jobs) run.end_ms = std::max(run.end_ms, job.finish_ms.value_or(0));
  fake_series(random, level, run);
  fake_arrivals(random, level + 0.04, run);
  return run;
}

ReportInput fake_input() {
  ReportInput input;
  input.title = "Four policies on a week of made-up load";
  input.command =
      "berth simulate --jobs made-up.csv --nodes 96x8xV100 --seeds 1-3 --policy fifo --policy fgd --report out";
  input.version = "0.0-test";
  input.synthetic = true;
  input.jobs = 2500;
  input.nodes = kNodes;
  input.gpu_milli = kNodes * 8000;
  input.sources = {"made-up.csv (native, 2512 rows)"};
  input.notes = {"days 22-58 of the trace; the cluster is empty at the beginning of the window"};
  input.defaults_taken = {{"CPU of a job not stated: it asks for none", 2500},
                          {"jobs of up to 8 GPUs whose number of workers is not stated: one worker", 2480}};
  input.rows_left_out = {{"jobs submitted outside of days 22-58", 1928}};
  input.overlay_taken = {{"checkpoint contract supplied", 700}};
  input.bad_rows = {12, {{"submit_s: negative", 12}}, {{"made-up.csv", 17, "submit_s: negative"}}};
  return input;
}

std::vector<RunResult> fake_runs(const std::vector<std::string>& queues) {
  std::vector<RunResult> runs;
  const std::array policies = {std::pair{"strict-fifo", 0.74}, std::pair{"fifo-best-fit", 0.80}, std::pair{"fgd", 0.89},
                               std::pair{"sjf-oracle", 0.85}};
  std::int64_t delay_ms = 16 * kHourMs;
  for (const auto& [policy, level] : policies) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) runs.push_back(fake_run(policy, seed, level, delay_ms, queues));
    delay_ms /= 3;
  }
  return runs;
}

std::vector<std::string> plain_queues() {
  return {"research/vision", "research/nlp", "product/ads", "platform", "interns"};
}

std::string file_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST_CASE("summary.json has the documented fields, and they are what the outcomes say") {
  const std::vector<RunResult> runs = fake_runs(plain_queues());
  const auto measured = measure_runs(runs);
  const json::value summary = json::parse(summary_json(fake_input(), measured));
  CHECK(summary.at("schema") == kSummarySchema);
  CHECK(summary.at("input").at("bad_rows").at("total").as_int64() == 12);
  CHECK(summary.at("input").at("defaults_taken").as_array().size() == 2);
  REQUIRE(summary.at("runs").as_array().size() == runs.size());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const json::value& run = summary.at("runs").at(i);
    CHECK(run.at("policy").as_string() == runs[i].policy);
    for (const char* field :
         {"seed", "gpu_allocation_pct", "gpu_allocation_at_100_pct", "fragmentation_pct", "mean_wait_s", "p99_wait_s",
          "max_wait_s", "mean_jct_s", "preemptions", "gpu_hours_lost", "guarantee_violation_s", "moves"}) {
      CHECK_MESSAGE(run.at(field).is_number(), field);
    }
    double wait = 0;
    double completed = 0;
    for (const JobOutcome& job : runs[i].jobs) {
      if (job.job_end != JobEnd::kCompleted) continue;
      wait += static_cast<double>(*job.finish_ms - job.submit_ms - job.useful_ms) / 1000;
      ++completed;
    }
    CHECK(run.at("mean_wait_s").to_number<double>() == doctest::Approx(wait / completed));
  }
  // Four policies, three of them compared with the first.
  CHECK(summary.at("policies").as_array().size() == 4);
  const json::array& comparisons = summary.at("comparisons").as_array();
  CHECK(std::all_of(comparisons.begin(), comparisons.end(),
                    [](const json::value& entry) { return entry.at("baseline") == "strict-fifo"; }));
  const auto wait_of_fgd = std::find_if(comparisons.begin(), comparisons.end(), [](const json::value& entry) {
    return entry.at("policy") == "fgd" && entry.at("measure") == "mean_wait_s";
  });
  REQUIRE(wait_of_fgd != comparisons.end());
  CHECK(wait_of_fgd->at("count").as_int64() == 3);
  CHECK(wait_of_fgd->at("mean").as_double() < 0);
  CHECK(wait_of_fgd->at("ci95_low").as_double() < wait_of_fgd->at("ci95_high").as_double());
}

TEST_CASE("what a run did not measure is null, and nothing is divided by nothing") {
  RunResult empty;
  empty.policy = "nothing";
  std::vector<RunResult> runs = {empty};
  const json::value summary = json::parse(summary_json({}, measure_runs(runs)));
  const json::value& run = summary.at("runs").at(0);
  CHECK(run.at("mean_wait_s").is_null());
  CHECK(run.at("gpu_allocation_pct").is_null());
  CHECK(run.at("jain_index").is_null());
  CHECK(run.at("preemptions").to_number<double>() == 0);
  CHECK(report_page({}, measure_runs(runs)).find("nothing") != std::string::npos);
  CHECK(report_page({}, {}).find("</html>") != std::string::npos);
}

TEST_CASE("the per-job CSV reads back, row by row, and no cell is a formula") {
  std::vector<std::string> queues(kHostile.begin(), kHostile.end());
  RunResult run = fake_run("=policy", 1, 0.8, kHourMs, queues);
  for (std::size_t i = 0; i < kHostile.size(); ++i) run.jobs[i].id = kHostile[i];
  const std::vector<RunResult> runs = {run};
  const std::string csv = jobs_csv(measure_runs(runs));
  CsvReader reader(csv, {});
  CsvRow row;
  std::string reason;
  REQUIRE(reader.next(row, reason) == CsvReader::Step::kRow);
  const std::size_t columns = row.fields.size();
  std::size_t rows = 0;
  while (reader.next(row, reason) == CsvReader::Step::kRow) {
    CHECK(row.fields.size() == columns);
    for (const std::size_t text : {0U, 2U, 3U, 4U, 5U}) {
      CHECK(std::string("=+-@\t\r\n").find((row.fields[text] + " ")[0]) == std::string::npos);
    }
    ++rows;
  }
  CHECK(rows == run.jobs.size());
  CHECK(csv_cell("=1+1") == "\"'=1+1\"");
  CHECK(csv_cell("  =1") == "\"'  =1\"");
  CHECK(csv_cell("say \"x\"") == "\"say \"\"x\"\"\"");
  CHECK(csv_cell("plain") == "\"plain\"");
}

TEST_CASE("hostile names are inert in the page, whatever they are the name of") {
  std::vector<std::string> queues(kHostile.begin(), kHostile.end());
  std::vector<RunResult> runs;
  ReportInput input = fake_input();
  for (const char* name : kHostile) {
    RunResult run;
    run.policy = name;
    run.queues = queues;
    run.capacity_gpu_milli = 8000;
    run.node_gpu_milli = {8000};
    run.end_ms = 10;
    JobOutcome job;
    job.id = job.queue = job.job_class = name;
    job.finish_ms = 10;
    job.useful_ms = 5;
    job.job_end = JobEnd::kCompleted;
    run.jobs.push_back(job);
    run.gantt.push_back({0, 0, 8000, 0, 10});
    runs.push_back(run);
    input.title += name;
    input.command += name;
    input.sources.push_back(name);
    input.notes.push_back(name);
    input.defaults_taken[name] = input.overlay_taken[name] = input.rows_left_out[name] = 1;
    input.bad_rows.by_reason[name] = 1;
    input.bad_rows.first.push_back({name, 1, name});
  }
  const std::string page = report_page(input, measure_runs(runs));
  CHECK(page.find("<img") == std::string::npos);
  CHECK(page.find("<script>alert") == std::string::npos);
  CHECK(page.find("</script><script>alert") == std::string::npos);
  CHECK(page.find("\x1b") == std::string::npos);
  CHECK(page.find("\u2028") == std::string::npos);
  // Two script elements and no more: the data and the program.
  std::size_t scripts = 0;
  for (std::size_t at = page.find("<script"); at != std::string::npos; at = page.find("<script", at + 1)) ++scripts;
  CHECK(scripts == 2);
  // No bidirectional control and no zero-width character: they would make one name look like another.
  CHECK(page.find("\u202E") == std::string::npos);
  CHECK(page.find("\u200B") == std::string::npos);
  CHECK(page.find("[U+202E]gpj") != std::string::npos);
  CHECK_NOTHROW(json::parse(summary_json(input, measure_runs(runs))));
  if (const char* kept = std::getenv("BERTH_REPORT_SAMPLE")) {
    CHECK(write_report(std::string(kept) + "/hostile", input, runs).has_value());
  }
}

JobOutcome ended(const std::string& id, JobEnd job_end, std::int64_t gpu_milli = 1000) {
  JobOutcome job;
  job.id = id;
  job.gpu_milli = gpu_milli;
  job.useful_ms = 10'000;
  if (job_end == JobEnd::kCompleted) job.finish_ms = 10'000;
  job.job_end = job_end;
  return job;
}

RunResult small_run(const std::string& policy, std::vector<JobOutcome> jobs) {
  RunResult run;
  run.policy = policy;
  run.seed = 1;
  run.end_ms = 100'000;
  run.capacity_gpu_milli = 8000;
  run.jobs = std::move(jobs);
  return run;
}

TEST_CASE("who leaves jobs waiting is not flattered: they count, and unlike jobs are not compared") {
  RunResult late = small_run("late", {ended("a", JobEnd::kCompleted), ended("b", JobEnd::kCompleted)});
  late.jobs[1].finish_ms = 60'000;
  const RunResult lazy = small_run("lazy", {ended("a", JobEnd::kCompleted), ended("b", JobEnd::kWaiting)});
  const std::vector<RunResult> runs = {late, lazy};
  const json::value summary = json::parse(summary_json({}, measure_runs(runs)));
  const json::value& run = summary.at("runs").at(1);
  CHECK(run.at("completed") == 1);
  CHECK(run.at("waiting_at_end") == 1);
  CHECK(run.at("running_at_end") == 0);
  CHECK(run.at("mean_wait_s").as_double() == 0);
  CHECK(run.at("mean_wait_at_least_s").as_double() == 50);  // (0 + 100) / 2
  CHECK(summary.at("runs").at(0).at("mean_wait_at_least_s").as_double() == 25);
  for (const json::value& one : summary.at("comparisons").as_array()) {
    CHECK(one.at("same_jobs") == false);
    CHECK(one.at("completed_only_by_baseline") == 1);
    CHECK(one.at("completed_only_by_policy") == 0);
  }
  const std::string table = terminal_table(runs);
  for (const char* text : {"jobs still waiting at the end", "jobs still running at the end", "jobs completed",
                           "jobs refused", "are of different jobs"}) {
    CHECK_MESSAGE(table.find(text) != std::string::npos, text);
  }
  const std::string page = report_page({}, measure_runs(runs));
  CHECK(page.find("jobs still waiting at the end") != std::string::npos);
  CHECK(page.find("lazy completed 0 jobs that late did not") != std::string::npos);
  CHECK(
      page.find("1 GPU</th><td>25.0 s<span class=\"ci\">× 1.000 / 6.000</span></td><td>0 s<span class=\"ci\">× 1.000 / "
                "1.000 · 1 left</span></td>") != std::string::npos);
  // The lower mean over completed jobs is not marked as the best, nor is the shorter makespan.
  CHECK(page.find("makespan</th><td>60.0 s</td><td>10.0 s</td>") != std::string::npos);
  CHECK(page.find("waiting, mean</th><td>25.0 s</td><td>0 s</td>") != std::string::npos);
}

TEST_CASE("seeds that change nothing are no evidence: that is said, and nothing is green or red") {
  const auto run_of = [](const std::string& policy, std::uint64_t seed, std::int64_t finish_ms) {
    RunResult run = small_run(policy, {ended("a", JobEnd::kCompleted)});
    run.seed = seed;
    run.jobs[0].finish_ms = finish_ms;
    return run;
  };
  const std::vector<RunResult> blind = {run_of("slow", 1, 60'000), run_of("slow", 2, 60'000), run_of("fast", 1, 20'000),
                                        run_of("fast", 2, 20'000)};
  CHECK(policies_blind_to_seeds(measure_runs(blind)) == "slow, fast");
  CHECK(terminal_table(blind).find("the seed changed nothing for slow, fast") != std::string::npos);
  const std::string page = report_page({}, measure_runs(blind));
  CHECK(page.find("The seed changed nothing for slow, fast") != std::string::npos);
  CHECK(page.find("<td class=\"better\">") == std::string::npos);
  std::vector<RunResult> seeing = blind;
  seeing[2].jobs[0].finish_ms = 20'100;
  CHECK(policies_blind_to_seeds(measure_runs(seeing)) == "slow");
  const json::value summary = json::parse(summary_json({}, measure_runs(seeing)));
  CHECK(summary.at("policies").at(0).at("seed_changes_nothing") == true);
  CHECK(summary.at("policies").at(1).at("seed_changes_nothing") == false);
  CHECK(report_page({}, measure_runs(seeing)).find("<td class=\"better\">") != std::string::npos);
  CHECK(policies_blind_to_seeds(measure_runs({blind[0], blind[2]})).empty());  // one seed: nothing was repeated
}

// A job of some GPUs that was submitted at 0 and waited so long for an hour's run.
JobOutcome waited(std::int64_t gpus, std::int64_t wait_h) {
  JobOutcome job = ended("j", JobEnd::kCompleted, gpus * 1000);
  job.useful_ms = kHourMs;
  job.finish_ms = job.useful_ms + wait_h * kHourMs;
  return job;
}

TEST_CASE("the page begins with four tiles and the worst news, and one seed has percent and colour too") {
  RunResult slow = small_run("slow", {waited(1, 20), waited(1, 20), waited(1, 20), waited(32, 18)});
  RunResult fast = small_run("fast", {waited(1, 2), waited(1, 2), waited(1, 2), waited(32, 40)});
  for (RunResult* run : {&slow, &fast}) run->end_ms = 100 * kHourMs;
  const std::vector<RunResult> runs = {slow, fast};
  const auto measured = measure_runs(runs);
  const std::vector<LongerWait> longer = longer_waits(measured);
  REQUIRE_EQ(longer.size(), 1);
  CHECK_EQ(longer[0].group, "9-64 GPUs");
  CHECK_EQ(longer[0].policy, "fast");
  CHECK_EQ(longer[0].wait_s, 40 * 3600);
  CHECK_EQ(longer[0].baseline_wait_s, 18 * 3600);

  const std::string page = report_page({}, measured);
  const std::size_t headline = page.find("<section id=\"headline\">");
  REQUIRE(headline != std::string::npos);
  CHECK(headline < page.find("<section id=\"charts\">"));
  const std::string top = page.substr(headline, page.find("<section id=\"charts\">") - headline);
  std::size_t tiles = 0;
  for (std::size_t at = top.find("\"tile\""); at != std::string::npos; at = top.find("\"tile\"", at + 1)) ++tiles;
  CHECK(tiles <= 4);
  CHECK(top.find("class=\"better\">-41 %") != std::string::npos);  // 19.5 h in the mean, then 11.5 h
  CHECK(top.find("<b>9-64 GPUs</b> wait 40.00 h instead of 18.00 h (+122 %)") != std::string::npos);
  CHECK(page.find("▲ +122 %") != std::string::npos);
  const std::vector<RunResult> alone = {slow};
  CHECK(longer_waits(measure_runs(alone)).empty());
  CHECK(report_page({}, measure_runs(alone)).find("The worst news") == std::string::npos);
}

TEST_CASE("what is a little more or a little longer is no bad news, and what is equal is no change") {
  const RunResult first = small_run("first", {waited(1, 20), waited(32, 18)});
  const RunResult second = small_run("second", {waited(1, 24), waited(32, 18)});
  const std::vector<RunResult> runs = {first, second};
  const auto measured = measure_runs(runs);
  CHECK(longer_waits(measured).empty());
  CHECK(report_page({}, measured).find("No size, queue or class of jobs waits a quarter longer than with first.") !=
        std::string::npos);
  CHECK_EQ(relative_change(3, 3), "");
  CHECK_EQ(relative_change(3, 0), "");
  CHECK_EQ(relative_change(3.1, 3), "+3.3 %");
  CHECK_EQ(relative_change(0, 3), "-100 %");
}

TEST_CASE("the axes of time end a quarter of the arrivals after the last arrival, summary.json does not") {
  RunResult run = small_run("p", {waited(1, 1), waited(1, 1)});
  run.jobs[1].submit_ms = 100 * kHourMs;
  run.end_ms = 1000 * kHourMs;
  CHECK_EQ(drawn_end_ms(run), 125 * kHourMs);
  run.end_ms = 110 * kHourMs;
  CHECK_EQ(drawn_end_ms(run), 110 * kHourMs);
  run.end_ms = 1000 * kHourMs;
  FleetSample sample;
  sample.capacity_gpu_milli = 8000;
  run.fleet = {sample};
  CHECK(curves_of(run, 400, drawn_end_ms(run)).utilization.back().first < 125);
  const std::vector<RunResult> runs = {run};
  const json::value summary = json::parse(summary_json({}, measure_runs(runs)));
  const json::array& over_time = summary.at("runs").at(0).at("over_time").at("utilization_pct").as_array();
  CHECK(over_time.back().at(0).to_number<double>() > 900 * 3600);
}

TEST_CASE("summary.json has what happened over time and over load, as short series") {
  RunResult run = small_run("one", {ended("a", JobEnd::kCompleted)});
  for (const std::int64_t at : {0, 40'000}) {
    FleetSample sample;
    sample.at_ms = at;
    sample.capacity_gpu_milli = 8000;
    sample.allocated_gpu_milli = at == 0 ? 2000 : 8000;
    sample.waiting_jobs = 3;
    run.fleet.push_back(sample);
  }
  run.fairness.push_back({0, 8000, {{2000, 8000, 4000, 1}}});
  const json::value timed = json::parse(summary_json({}, measure_runs({run}))).at("runs").at(0);
  CHECK(timed.at("over_load").is_null());
  const json::array& utilization = timed.at("over_time").at("utilization_pct").as_array();
  REQUIRE(utilization.size() == 100);
  CHECK(utilization.front().at(1).to_number<double>() == 25);
  CHECK(utilization.at(39).at(1).to_number<double>() == 25);
  CHECK(utilization.at(40).at(1).to_number<double>() == 100);
  CHECK(utilization.at(40).at(0).to_number<double>() == doctest::Approx(40.5).epsilon(0.02));
  CHECK(timed.at("over_time").at("waiting_jobs").at(99).at(1).to_number<double>() == 3);
  CHECK(timed.at("over_time").at("share_gap_pct").at(0).at(1).to_number<double>() > 0);
  CHECK(timed.at("over_time").at("jain_index").as_array().size() == 100);
  RunResult order;
  order.capacity_gpu_milli = 8000;
  order.arrivals = {{4000, 4000, 0}, {8000, 7000, 1000}};
  const json::value ordered = json::parse(summary_json({}, measure_runs({order}))).at("runs").at(0);
  CHECK(ordered.at("over_time").is_null());
  CHECK(json::serialize(ordered.at("over_load").at("allocation_pct")) == "[[5E1,5E1],[1E2,8.75E1]]");
  CHECK(ordered.at("over_load").at("fragmentation_pct").at(1).at(1).to_number<double>() == 12.5);
}

TEST_CASE("policies that completed the same jobs are compared without a word about it") {
  const std::vector<RunResult> runs = {small_run("a", {ended("a", JobEnd::kCompleted)}),
                                       small_run("b", {ended("a", JobEnd::kCompleted)})};
  CHECK(terminal_table(runs).find("different jobs") == std::string::npos);
  const json::value summary = json::parse(summary_json({}, measure_runs(runs)));
  for (const json::value& one : summary.at("comparisons").as_array()) CHECK(one.at("same_jobs") == true);
}

TEST_CASE("the ninth policy does not look like the first") {
  std::vector<RunResult> runs;
  for (int i = 0; i < 9; ++i) runs.push_back(small_run("p" + std::to_string(i), {ended("a", JobEnd::kCompleted)}));
  const std::string page = report_page({}, measure_runs(runs));
  CHECK(page.find("<span class=\"swatch c0 d0\"></span>p0") != std::string::npos);
  CHECK(page.find("<span class=\"swatch c0 d1\"></span>p8") != std::string::npos);
}

TEST_CASE("sizes stand in the order of size") {
  std::vector<JobOutcome> jobs;
  for (const std::int64_t gpus : {600, 1, 10, 2}) {
    jobs.push_back(ended("j" + std::to_string(gpus), JobEnd::kCompleted, gpus * 1000));
  }
  const json::value summary = json::parse(summary_json({}, measure_runs({small_run("p", jobs)})));
  std::vector<std::string> names;
  for (const json::value& one : summary.at("runs").at(0).at("by_size").as_array()) {
    names.emplace_back(one.at("name").as_string().c_str());
  }
  CHECK(names == std::vector<std::string>{"1 GPU", "2-4 GPUs", "9-64 GPUs", "over 512 GPUs"});
}

TEST_CASE("an order of arrival has no measure that needs time") {
  RunResult run = small_run("FGD", {});
  run.arrivals = {{4000, 4000, 0}, {9000, 8000, 0}};
  run.dropped = 1;
  const json::value summary = json::parse(summary_json({}, measure_runs({run})));
  const json::value& one = summary.at("runs").at(0);
  CHECK(one.at("refused") == 1);
  CHECK(one.at("jobs") == 2);
  for (const char* key : {"guarantee_violation_s", "preemptions", "restarts", "moves", "gpu_hours_lost", "completed",
                          "waiting_at_end", "mean_wait_s", "makespan_s"}) {
    CHECK_MESSAGE(one.at(key).is_null(), key);
  }
}

TEST_CASE("bytes that are not UTF-8 do not break summary or page") {
  RunResult run;
  run.policy = "bad\xff\xc3";
  const std::vector<RunResult> runs = {run};
  CHECK_NOTHROW(json::parse(summary_json({}, measure_runs(runs))));
  CHECK(report_page({}, measure_runs(runs)).find("bad\xef\xbf\xbd") != std::string::npos);
}

TEST_CASE("the page needs no network") {
  const std::vector<RunResult> runs = fake_runs(plain_queues());
  const std::string page = report_page(fake_input(), measure_runs(runs));
  CHECK(page.find("default-src 'none'") != std::string::npos);
  for (const char* outside :
       {"src=", "href=", "@import", "url(", "fetch(", "XMLHttpRequest", "WebSocket", "innerHTML"}) {
    CHECK_MESSAGE(page.find(outside) == std::string::npos, outside);
  }
  CHECK(page.find("Synthetic results") != std::string::npos);
  CHECK(page.size() < 3'000'000);
}

TEST_CASE("over time: equal stretches that keep the integral") {
  Random random(3);
  std::vector<FleetSample> samples;
  std::int64_t at = 0;
  double integral = 0;
  for (int i = 0; i < 5000; ++i) {
    FleetSample sample;
    sample.at_ms = at;
    sample.waiting_jobs = random.between(0, 100);
    const std::int64_t held = random.between(0, 5000);
    integral += static_cast<double>(sample.waiting_jobs * held);
    at += held;
    samples.push_back(sample);
  }
  const Curve curve = curve_over_time<FleetSample>(
      samples, at, [](const FleetSample& s) { return static_cast<double>(s.waiting_jobs); });
  REQUIRE(curve.size() == static_cast<std::size_t>(kCurvePoints));
  double kept = 0;
  for (const auto& point : curve) kept += point.second * static_cast<double>(at) / kCurvePoints;
  CHECK(kept == doctest::Approx(integral).epsilon(1e-3));
  CHECK(curve_over_time<FleetSample>({}, 10, [](const FleetSample&) { return 0.0; }).empty());
}

TEST_CASE("a distribution rises from its least value to 100 % at its largest") {
  const Curve curve = distribution_curve({5, 1, 3});
  CHECK(curve.size() == static_cast<std::size_t>(kQuantiles));
  CHECK(curve.front() == std::pair{1.0, 0.0});
  CHECK(curve.back() == std::pair{5.0, 100.0});
  CHECK(std::is_sorted(curve.begin(), curve.end()));
}

TEST_CASE("a Gantt image is bounded, stays on the canvas, and shows who holds a node") {
  RunResult run;
  run.queues = {"a", "b"};
  run.node_gpu_milli = {8000, 8000};
  run.gantt = {{0, 0, 8000, 0, 120}, {1, 1, 4000, 120, 240}};
  const GanttImage image = gantt_image(run);
  CHECK(image.rows == 2);
  CHECK(image.columns == 240);
  REQUIRE(image.cells.size() == 2);
  CHECK(image.queues == std::vector<std::string>{"a", "b"});
  CHECK(image.cells[0].row == 0);
  CHECK(image.cells[0].column == 0);
  CHECK(image.cells[0].columns == 120);
  CHECK(image.cells[0].level == kGanttLevels);
  CHECK(image.cells[1].column == 120);
  CHECK(image.cells[1].level == kGanttLevels / 2);
  CHECK(image.cells[1].queue == 1);

  std::vector<std::string> many;
  for (int i = 0; i < 30; ++i) many.push_back("q" + std::to_string(i));
  const GanttImage large = gantt_image(fake_run("p", 1, 0.8, kHourMs, many));
  CHECK(large.rows == kGanttRows);
  CHECK(large.queues.size() == static_cast<std::size_t>(kGanttQueues));
  CHECK(large.queues.back() == "others (19)");
  for (const GanttCell& cell : large.cells) {
    CHECK(cell.column + cell.columns <= large.columns);
    CHECK(cell.row < large.rows);
  }
}

TEST_CASE("the report is written whole, and the terminal table names every policy") {
  const char* kept = std::getenv("BERTH_REPORT_SAMPLE");
  const std::filesystem::path folder = kept != nullptr
                                           ? std::filesystem::path(kept)
                                           : std::filesystem::temp_directory_path() / "berth-report-test" / "new";
  const std::vector<RunResult> runs = fake_runs(plain_queues());
  const auto written = write_report(folder.string(), fake_input(), runs);
  CHECK_MESSAGE(written.has_value(), (written ? "" : written.error().message));
  CHECK(file_text(folder / "report.html").ends_with("</html>\n"));
  CHECK(json::parse(file_text(folder / "summary.json")).at("runs").as_array().size() == 12);
  CHECK(std::filesystem::file_size(folder / "jobs.csv") > 100'000);
  const std::string table = terminal_table(runs);
  for (const char* word : {"strict-fifo", "fgd", "waiting, mean", "±"}) CHECK(table.find(word) != std::string::npos);
  CHECK_FALSE(write_report("/proc/nowhere", fake_input(), {}).has_value());
  CHECK_FALSE(prepare_report("/proc").has_value());
  if (kept == nullptr) std::filesystem::remove_all(folder.parent_path());
}

}  // namespace
}  // namespace berth::sim
