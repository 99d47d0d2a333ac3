#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "base/random.h"
#include "sim/measure/fairness.h"
#include "sim/measure/over_seeds.h"
#include "sim/measure/run_measures.h"

namespace berth::sim {
namespace {

JobOutcome completed(std::int64_t submit_ms, std::int64_t start_ms, std::int64_t finish_ms, std::int64_t useful_ms,
                     std::int64_t gpu_milli = 1000) {
  JobOutcome job;
  job.submit_ms = submit_ms;
  job.first_start_ms = start_ms;
  job.finish_ms = finish_ms;
  job.useful_ms = useful_ms;
  job.gpu_milli = gpu_milli;
  job.job_end = JobEnd::kCompleted;
  return job;
}

RunMeasures measured(const std::vector<JobOutcome>& jobs, const std::vector<FleetSample>& fleet = {},
                     const std::vector<ArrivalSample>& arrivals = {}, const std::vector<FairnessSample>& fairness = {},
                     std::int64_t end_ms = 0) {
  return measure_run({jobs, fleet, arrivals, fairness, 10'000, end_ms, {}});
}

TEST_CASE("waiting is completion - submission - useful run, so that a stopped job waits") {
  // Submitted at 10, started at once, ran 30, was stopped for 20, repeated 5, ran its last 20: 50 of useful run.
  const JobOutcome job = completed(10'000, 10'000, 85'000, 50'000);
  CHECK(waiting_ms(job) == 25'000);
  CHECK(completion_ms(job) == 75'000);
  CHECK(slowdown(job) == doctest::Approx(1.5));
}

TEST_CASE("a job that did not complete has no waiting time, and is counted by its ending") {
  JobOutcome job = completed(0, 0, 10, 10);
  std::vector<JobOutcome> jobs;
  for (const JobEnd job_end : {JobEnd::kRunning, JobEnd::kWaiting, JobEnd::kRefused}) {
    job.job_end = job_end;
    CHECK_FALSE(waiting_ms(job).has_value());
    CHECK(waiting_at_least_ms(job, 50).has_value() == (job_end != JobEnd::kRefused));
    CHECK_FALSE(slowdown(job).has_value());
    jobs.push_back(job);
  }
  const RunMeasures measures = measured(jobs);
  CHECK(measures.jobs == 3);
  CHECK(measures.completed == 0);
  CHECK(measures.running_at_end == 1);
  CHECK(measures.waiting_at_end == 1);
  CHECK(measures.refused == 1);
  CHECK(measures.all.wait_s.count == 0);
}

TEST_CASE("percentiles are by nearest rank") {
  std::vector<double> hundred(100);
  std::iota(hundred.begin(), hundred.end(), 1.0);
  const Distribution d = distribution_of(hundred);
  CHECK(d.p50 == 50);
  CHECK(d.p90 == 90);
  CHECK(d.p99 == 99);
  CHECK(d.max == 100);
  CHECK(d.mean == doctest::Approx(50.5));
  CHECK(distribution_of({7}).p99 == 7);
  CHECK(distribution_of({3, 1}).p50 == 1);
  CHECK(distribution_of({}).count == 0);
  CHECK(nearest_rank(101, 990) == 99);
}

TEST_CASE("the order of values never matters, and every percentile is a value that occurred") {
  Random random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::int64_t> values;
    const auto count = random.between(1, 50);
    for (std::int64_t i = 0; i < count; ++i) values.push_back(random.between(0, 20) * 1000);
    std::vector<std::int64_t> reversed(values.rbegin(), values.rend());
    const Distribution a = distribution_of_ms_in_s(values);
    const Distribution b = distribution_of_ms_in_s(reversed);
    CHECK(a.mean == b.mean);
    for (const double p : {a.p50, a.p90, a.p99}) {
      CHECK(std::find(values.begin(), values.end(), static_cast<std::int64_t>(p) * 1000) != values.end());
      CHECK(p >= a.min);
      CHECK(p <= a.max);
    }
    CHECK(a.p99 == b.p99);
  }
}

TEST_CASE("sizes fall into their buckets at the edges") {
  CHECK(size_bucket(0) == "CPU only");
  CHECK(size_bucket(1) == "under 1 GPU");
  CHECK(size_bucket(999) == "under 1 GPU");
  CHECK(size_bucket(1000) == "1 GPU");
  CHECK(size_bucket(1001) == "2-4 GPUs");
  CHECK(size_bucket(8000) == "5-8 GPUs");
  CHECK(size_bucket(8001) == "9-64 GPUs");
  CHECK(size_bucket(512'000) == "65-512 GPUs");
  CHECK(size_bucket(512'001) == "over 512 GPUs");
}

TEST_CASE("groups partition the jobs") {
  std::vector<JobOutcome> jobs = {completed(0, 0, 10'000, 10'000), completed(0, 10'000, 40'000, 10'000, 8000)};
  jobs[0].queue = "a";
  jobs[0].preemptions = 2;
  jobs[1].lost_gpu_milli_ms = 8000LL * 3'600'000;
  jobs[1].moves = 1;
  jobs[1].restarts = 3;
  const RunMeasures measures = measured(jobs);
  CHECK(measures.by_queue.at("a").wait_s.mean == 0);
  CHECK(measures.by_queue.at("not stated").wait_s.mean == 30);
  CHECK(measures.by_size.at("5-8 GPUs").slowdown.max == 4);
  CHECK(measures.all.wait_s.mean == 15);
  CHECK(measures.all.jct_s.mean == 25);
  CHECK(measures.preemptions == 2);
  CHECK(measures.restarts == 3);
  CHECK(measures.moves == 1);
  CHECK(measures.gpu_hours_lost == doctest::Approx(8));
  CHECK(measures.gpu_hours_useful == doctest::Approx(90.0 / 3600));
  CHECK(measures.makespan_s == 40);
}

TEST_CASE("utilization and queue length are weighted by time, exactly") {
  // Ten GPUs: 10 for 10 s, 5 for 30 s; arrivals end at 20 s.
  const std::vector<JobOutcome> jobs = {completed(0, 0, 10'000, 10'000), completed(20'000, 20'000, 40'000, 20'000)};
  const std::vector<FleetSample> fleet = {
      {.at_ms = 0, .capacity_gpu_milli = 10'000, .allocated_gpu_milli = 10'000, .waiting_jobs = 4},
      {.at_ms = 10'000,
       .capacity_gpu_milli = 10'000,
       .allocated_gpu_milli = 5000,
       .fragmented_gpu_milli = 1000,
       .waiting_jobs = 0}};
  const RunMeasures measures = measured(jobs, fleet, {}, {}, 50'000);
  CHECK(measures.utilization_pct.value() == doctest::Approx(62.5));
  CHECK(measures.gpu_allocation_pct.value() == doctest::Approx(75));
  CHECK(measures.fragmentation_pct.value() == doctest::Approx(5));
  CHECK(measures.fragmentation_of_idle_pct.value() == doctest::Approx(20));
  CHECK(measures.mean_queue_length.value() == doctest::Approx(1));
  CHECK(measures.max_queue_length == 4);
  CHECK_FALSE(measures.jain_index.has_value());
}

TEST_CASE("allocation at x % arrived is the mean of the samples that round to x") {
  // Capacity 10 GPUs. 9.94 -> 99 %, 9.95 and 10.04 -> 100 %, 10.05 -> 101 %.
  const std::vector<ArrivalSample> arrivals = {
      {9940, 1000, 0}, {9950, 6000, 0}, {10'040, 8000, 0}, {10'050, 9000, 0}, {13'000, 9500, 400}};
  const RunMeasures measures = measured({}, {}, arrivals);
  CHECK(measures.gpu_allocation_at_100_pct.value() == doctest::Approx(70));
  CHECK(measures.gpu_allocation_at_130_pct.value() == doctest::Approx(95));
  CHECK(measures.gpu_allocation_pct.value() == doctest::Approx(95));
  CHECK(measures.fragmentation_pct.value() == doctest::Approx(4));
  CHECK(measures.fragmentation_of_idle_pct.value() == doctest::Approx(80));
  CHECK_FALSE(measured({}, {}, {{5000, 5000, 0}}).gpu_allocation_at_100_pct.has_value());
}

QueueSample queue_of(std::int64_t usage, std::int64_t demand, std::int64_t guaranteed, std::int64_t weight = 1) {
  return {.usage_milli = usage, .demand_milli = demand, .guaranteed_milli = guaranteed, .weight = weight};
}

TEST_CASE("entitlement: the guarantee first, then the rest by weight, never above demand") {
  CHECK(entitlements({0, 100, {queue_of(0, 1000, 0), queue_of(0, 1000, 0)}}) == std::vector<std::int64_t>{50, 50});
  CHECK(entitlements({0, 100, {queue_of(0, 1000, 0, 3), queue_of(0, 1000, 0, 1)}}) ==
        std::vector<std::int64_t>{75, 25});
  CHECK(entitlements({0, 100, {queue_of(0, 10, 0), queue_of(0, 1000, 0)}}) == std::vector<std::int64_t>{10, 90});
  // 60 guaranteed but only 20 wanted: 80 are left for the other.
  CHECK(entitlements({0, 100, {queue_of(0, 20, 60), queue_of(0, 1000, 0)}}) == std::vector<std::int64_t>{20, 80});
  CHECK(entitlements({0, 100, {queue_of(0, 100, 60), queue_of(0, 100, 0)}}) == std::vector<std::int64_t>{80, 20});
  // Guarantees over what is left of the fleet shrink alike.
  CHECK(entitlements({0, 50, {queue_of(0, 100, 60), queue_of(0, 100, 40)}}) == std::vector<std::int64_t>{30, 20});
}

QueueSample below(std::size_t parent, QueueSample queue) {
  queue.parent = parent;
  return queue;
}

TEST_CASE("entitlement in a tree: the fleet among the top queues, and what each is entitled to among its children") {
  // Two at the top, the first with two children of which one has a guarantee of 30; the other 70 are shared 35 and 35,
  // however many children each has, and what is left of the first's 65 is shared by its children.
  const FairnessSample sample{0,
                              100,
                              {queue_of(0, 300, 0), queue_of(0, 100, 0), below(0, queue_of(0, 100, 30)),
                               below(0, queue_of(0, 100, 0)), below(1, queue_of(0, 100, 0))}};
  CHECK(entitlements(sample) == std::vector<std::int64_t>{65, 35, 47, 17, 35});
  // What is guaranteed to a child is kept for it where its parent states no guarantee.
  const FairnessSample kept{0, 100, {queue_of(0, 90, 0), queue_of(0, 200, 0), below(0, queue_of(0, 90, 80))}};
  CHECK(entitlements(kept) == std::vector<std::int64_t>{90, 10, 90});
}

TEST_CASE("in a tree leaves have gap and Jain's index, and every queue may be below its guarantee") {
  const FairnessPoint point =
      fairness_at({0, 100, {queue_of(20, 100, 60), below(0, queue_of(20, 50, 50)), below(0, queue_of(0, 50, 0))}});
  CHECK(point.queues_violated == 2);
  CHECK(point.shortfall_milli == 40 + 30);
  CHECK(point.gap_pct == doctest::Approx(50));
  CHECK(point.jain.value() == doctest::Approx(0.5));  // x = 20/50 and 0: 0.4^2 / (2 * 0.4^2)
}

TEST_CASE(
    "no entitlement exceeds its demand, their sum never exceeds capacity, and nothing is left while somebody wants") {
  Random random(11);
  for (int round = 0; round < 2000; ++round) {
    FairnessSample sample{0, random.between(1, 1000), {}};
    std::int64_t demand = 0;
    const auto count = random.between(1, 6);
    for (std::int64_t i = 0; i < count; ++i) {
      sample.queues.push_back(
          queue_of(0, random.between(0, 400), random.between(0, 1) * random.between(0, 200), random.between(1, 5)));
      demand += sample.queues.back().demand_milli;
    }
    const auto shares = entitlements(sample);
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < shares.size(); ++i) {
      CHECK(shares[i] >= 0);
      CHECK(shares[i] <= sample.queues[i].demand_milli);
      sum += shares[i];
    }
    CHECK(sum <= sample.capacity_milli);
    CHECK(sum > std::min(demand, sample.capacity_milli) - count);
  }
}

TEST_CASE("gap, Jain and violations of one instant") {
  // Both are entitled to 50; one has 80, the other 20 and a guarantee of 30.
  const FairnessPoint point = fairness_at({0, 100, {queue_of(80, 100, 0), queue_of(20, 100, 0)}});
  CHECK(point.gap_pct == doctest::Approx(30));
  // x = 1.6 and 0.4: (2.0)^2 / (2 * (2.56 + 0.16)) = 4 / 5.44
  CHECK(point.jain.value() == doctest::Approx(4 / 5.44));
  CHECK(point.queues_violated == 0);
  const FairnessPoint violated = fairness_at({0, 100, {queue_of(80, 100, 0), queue_of(20, 100, 30)}});
  CHECK(violated.queues_violated == 1);
  CHECK(violated.shortfall_milli == 10);
  CHECK(fairness_at({0, 100, {queue_of(50, 50, 0), queue_of(50, 50, 0)}}).jain.value() == doctest::Approx(1));
  CHECK_FALSE(fairness_at({0, 100, {queue_of(0, 0, 30)}}).jain.has_value());
  CHECK(fairness_at({0, 100, {queue_of(0, 0, 30)}}).queues_violated == 0);
}

TEST_CASE("guarantee-violation seconds add up over queues and time") {
  // Two queues short for 10 s, one of them for 5 s more; then none until the end at 100 s.
  const std::vector<FairnessSample> samples = {
      {0, 10'000, {queue_of(0, 5000, 1000), queue_of(0, 5000, 2000)}},
      {10'000, 10'000, {queue_of(1000, 5000, 1000), queue_of(0, 5000, 2000)}},
      {15'000, 10'000, {queue_of(5000, 5000, 1000), queue_of(5000, 5000, 2000)}}};
  const FairnessSummary summary = summarize_fairness(samples, 100'000);
  CHECK(summary.violation_s == doctest::Approx(25));
  CHECK(summary.shortfall_gpu_h == doctest::Approx((3 * 10 + 2 * 5) / 3600.0));
  CHECK(summary.max_gap_pct.value() == doctest::Approx(50));
  CHECK(measured({}, {}, {}, samples, 100'000).guarantee_violation_s == doctest::Approx(25));
}

TEST_CASE("Student's t has the quantiles of the tables") {
  CHECK(student_t_quantile(0.975, 1) == doctest::Approx(12.706).epsilon(1e-4));
  CHECK(student_t_quantile(0.975, 4) == doctest::Approx(2.776).epsilon(1e-3));
  CHECK(student_t_quantile(0.975, 9) == doctest::Approx(2.262).epsilon(1e-3));
  CHECK(student_t_quantile(0.975, 120) == doctest::Approx(1.980).epsilon(1e-3));
}

TEST_CASE("mean and 95 % interval over seeds") {
  // 1..5: mean 3, sd sqrt(2.5), half width 2.776 * sqrt(2.5) / sqrt(5) = 1.963
  const Estimate result = estimate({1, 2, 3, 4, 5});
  CHECK(result.mean == doctest::Approx(3));
  CHECK(result.standard_deviation.value() == doctest::Approx(1.5811).epsilon(1e-4));
  CHECK(result.half_width.value() == doctest::Approx(1.963).epsilon(1e-3));
  CHECK(result.differs_from_zero());
  CHECK_FALSE(estimate({-1, 2, -3, 4}).differs_from_zero());
  CHECK_FALSE(estimate({5}).half_width.has_value());
  CHECK_FALSE(estimate({5}).differs_from_zero());
}

TEST_CASE("a paired comparison takes out what the seeds share") {
  // The seeds differ by tens, the policies by 1, 2 and 3 on each.
  const BySeed baseline = {{1, 10}, {2, 50}, {3, 90}, {9, 1000}};
  const BySeed values = {{1, 11}, {2, 52}, {3, 93}, {8, -1000}};
  const Estimate difference = paired_difference(values, baseline);
  CHECK(difference.count == 3);
  CHECK(difference.mean == doctest::Approx(2));
  CHECK(difference.half_width.value() == doctest::Approx(4.303 * 1 / 1.7320508).epsilon(1e-3));
  CHECK(paired_difference(values, {}).count == 0);
}

}  // namespace
}  // namespace berth::sim
