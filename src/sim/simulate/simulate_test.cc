// Runs on traces small enough to work out by hand.

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "sim/report/metrics.h"
#include "sim/report/summary.h"
#include "sim/report/write_report.h"
#include "sim/simulate/runs.h"
#include "sim/simulate/simulate_fixture.h"
#include "sim/trace/arrivals.h"

namespace berth::sim {
namespace {

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
  CHECK(result.jobs[2].job_end == JobEnd::kRefused);
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
    CHECK(result.jobs[0].job_end == JobEnd::kCompleted);
    CHECK(result.jobs[1].job_end == JobEnd::kRefused);
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

// A has the GPU from 0 on and passes its threshold; B never does. A is promoted after 30 s of waiting, evicts the
// running job, and is never evicted again.
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

// The run does not wait for a save that is due after everything else: it ends with its last change.
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
  CHECK(result.jobs[1].job_end == JobEnd::kWaiting);
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
  CHECK(result.jobs[1].job_end == JobEnd::kCompleted);
  CHECK(result.jobs[2].job_end == JobEnd::kCompleted);
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
  CHECK(run(trace, policy("fifo")).jobs[1].job_end == JobEnd::kRefused);
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
    for (const JobOutcome& outcome : result.jobs) CHECK(outcome.job_end == JobEnd::kCompleted);
  }
}

TEST_CASE("a run is billed queue by queue: who holds the floor pays for it, and is credited for what it lends") {
  TraceJob mine = job("mine", 0, 3600, 1);
  TraceJob theirs = job("theirs", 0, 3600, 3);
  theirs.tenant = "guests";
  Trace trace = trace_of("1x4xH100", {mine, theirs});
  OverlayQueue lab;
  lab.name = "lab";
  lab.guaranteed_milli = 2000;
  const auto workload = make_workload(trace, {lab});
  REQUIRE(workload.has_value());
  PriceBook book{"EUR", {}};
  PricePeriod& period = book.periods.emplace_back();
  period.gpus = {{"H100", 2'000'000, 3'000'000, {}}};
  period.lending_credit_percent = 60;
  const std::vector<RunPrices> prices{{"a.yaml", book}, {"b.yaml", book}};
  REQUIRE(check_models(prices.front(), workload->gpu_models).has_value());
  CHECK_FALSE(check_models(prices.front(), {"V100"}).has_value());
  const PolicySpec spec = policy("berth");
  const auto result = run_by_clock({*workload, spec, 42, false, nullptr, &prices});
  REQUIRE(result.has_value());
  REQUIRE_EQ(result->bills.size(), 2);
  REQUIRE_EQ(result->bills[1].queues.size(), 2);
  CHECK_EQ(result->bills[0].book, "a.yaml");
  const QueueBill& guests = result->bills[1].queues[0];
  const QueueBill& of_lab = result->bills[1].queues[1];
  CHECK_EQ(guests.queue, "guests");
  // It borrows 3 GPUs: 2 that back no floor, and 1 of lab's.
  CHECK(guests.burst_micro / 10'000 == 900);
  CHECK_EQ(guests.total_micro, guests.burst_micro);
  CHECK(of_lab.floor_micro / 10'000 == 400);
  CHECK(of_lab.credit_micro / 10'000 == -180);
  CHECK_EQ(of_lab.total_micro, of_lab.floor_micro + of_lab.credit_micro);
}

TEST_CASE("a run is billed by a price book with off-peak windows") {
  const std::string path = "off_peak_prices.yaml";
  std::ofstream(path) << "currency: EUR\nprices:\n  - valid_from: 2026-11-01\n    gpus: {H100: {floor: 2, burst: 3}}\n"
                         "    off_peak: [{zone: UTC, discount: 30}]\n";
  std::string note;
  auto prices = read_run_prices(path, note);
  std::filesystem::remove(path);
  REQUIRE(prices.has_value());
  const Trace trace = trace_of("1x4xH100", {job("one", 0, 3600, 2)});
  const auto workload = make_workload(trace, {});
  REQUIRE(workload.has_value());
  const std::vector<RunPrices> books{*prices};
  const PolicySpec spec = policy("berth");
  const auto result = run_by_clock({*workload, spec, 42, false, nullptr, &books});
  REQUIRE(result.has_value());
  REQUIRE_EQ(result->bills[0].queues.size(), 1);
  const QueueBill& bill = result->bills[0].queues[0];
  CHECK(bill.burst_micro / 10'000 == 600);
  CHECK(bill.other_micro / 10'000 == -180);  // the discount
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

}  // namespace
TEST_CASE("energy: what jobs held and what was idle, by the watts of each model; preferring the thrifty draws less") {
  const auto spec = [](const std::string& prefer) {
    const auto read = read_policy_text("e.yaml", "{name: e, order: berth, energy: {prefer: " + prefer +
                                                     ", watts: {A100: {watts: 400, idle_watts: 50}, "
                                                     "L4: {watts: 72, idle_watts: 12}}}}");
    REQUIRE_MESSAGE(read.has_value(), (read ? "" : read.error().message));
    return *read;
  };
  // The smaller nodes fit best, and draw more.
  const Trace trace = trace_of("1x2xA100,1x4xL4", {job("one", 0, 3600, 2), job("two", 0, 3600, 2)});
  const RunResult plain = run(trace, spec("false"));
  REQUIRE(plain.energy);
  CHECK_EQ(plain.energy->busy_wh, 2 * 400 + 2 * 72);
  CHECK_EQ(plain.energy->idle_wh, 2 * 12);
  const RunResult thrifty = run(trace, spec("true"));
  REQUIRE(thrifty.energy);
  CHECK_EQ(thrifty.energy->busy_wh, 4 * 72);
  CHECK_EQ(thrifty.energy->idle_wh, 2 * 50);
  CHECK_FALSE(run(trace, policy("berth")).energy);
  PolicySpec partly = spec("false");
  partly.watts.pop_back();
  const auto workload = make_workload(trace, {});
  REQUIRE(workload.has_value());
  CHECK_FALSE(run_by_clock({*workload, partly, 42, true, nullptr}));
}

TEST_CASE("energy: a policy file that states it wrongly is refused") {
  for (const char* wrong : {"{}", "none", "{watts: {}}", "{prefer: true}", "{watts: {L4: {}}}",
                            "{watts: {L4: {watts: 0}}}", "{watts: {L4: {watts: -1}}}", "{watts: {L4: {watts: 7.5}}}",
                            "{watts: {L4: {watts: 100001}}}", "{watts: {L4: {watts: 99999999999999999999}}}",
                            "{watts: {L4: {watts: 70, idle_watts: 71}}}", "{watts: {L4: {watts: 70, idle: 7}}}",
                            "{watts: {L4: {watts: 70}}, more: 1}", "{watts: {L4: {watts: 70}}, prefer: yes}"}) {
    CAPTURE(wrong);
    CHECK_FALSE(read_policy_text("e.yaml", std::string("{name: e, order: berth, energy: ") + wrong + "}"));
  }
  CHECK(read_policy_text("e.yaml", "{name: e, order: fifo, energy: {watts: {L4: {watts: 70}}}}"));
  CHECK_FALSE(read_policy_text("e.yaml", "{name: e, order: fifo, energy: {prefer: true, watts: {L4: {watts: 70}}}}"));
}

}  // namespace berth::sim
