#include "sim/measure/run_measures.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include "base/checked.h"
#include "sim/measure/fairness.h"
#include "sim/measure/step.h"

namespace berth::sim {
namespace {

double percent_of(Int128 part, Int128 whole) {
  return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

// Times of one group of jobs, gathered before they are sorted.
struct GroupTimes {
  std::int64_t jobs = 0;
  std::vector<std::int64_t> wait_ms, wait_at_least_ms, jct_ms;
  std::vector<double> slowdown;

  void add(const JobOutcome& job, std::int64_t end_ms) {
    ++jobs;
    if (const auto least = waiting_at_least_ms(job, end_ms)) wait_at_least_ms.push_back(*least);
    if (const auto wait = waiting_ms(job)) wait_ms.push_back(*wait);
    if (const auto jct = completion_ms(job)) jct_ms.push_back(*jct);
    if (const auto factor = berth::sim::slowdown(job)) slowdown.push_back(*factor);
  }
  GroupMeasures measures() const {
    return {jobs, distribution_of_ms_in_s(wait_ms), distribution_of_ms_in_s(wait_at_least_ms),
            distribution_of_ms_in_s(jct_ms), distribution_of(slowdown)};
  }
};

using Groups = std::map<std::string, GroupTimes>;

std::map<std::string, GroupMeasures> measures_of(const Groups& groups) {
  std::map<std::string, GroupMeasures> result;
  for (const auto& [name, times] : groups) result.emplace(name, times.measures());
  return result;
}

std::string or_not_stated(const std::string& name) { return name.empty() ? "not stated" : name; }

void count_job_end(JobEnd job_end, RunMeasures& measures) {
  switch (job_end) {
    case JobEnd::kCompleted:
      ++measures.completed;
      return;
    case JobEnd::kRunning:
      ++measures.running_at_end;
      return;
    case JobEnd::kWaiting:
      ++measures.waiting_at_end;
      return;
    case JobEnd::kRefused:
      ++measures.refused;
      return;
  }
}

double gpu_hours(Int128 gpu_milli_ms) { return static_cast<double>(gpu_milli_ms) / 1000 / 3'600'000; }

void measure_jobs(const std::vector<JobOutcome>& jobs, std::int64_t end_ms, RunMeasures& measures) {
  GroupTimes all;
  Groups by_size, by_queue, by_class;
  Int128 useful = 0;
  Int128 lost = 0;
  for (const JobOutcome& job : jobs) {
    count_job_end(job.job_end, measures);
    all.add(job, end_ms);
    by_size[std::string(size_bucket(job.gpu_milli))].add(job, end_ms);
    by_queue[or_not_stated(job.queue)].add(job, end_ms);
    by_class[or_not_stated(job.job_class)].add(job, end_ms);
    if (job.job_end == JobEnd::kCompleted) useful += Int128{job.gpu_milli} * job.useful_ms;
    lost += job.lost_gpu_milli_ms;
    measures.preemptions += job.preemptions;
    measures.restarts += job.restarts;
    measures.moves += job.moves;
  }
  measures.jobs = all.jobs;
  measures.all = all.measures();
  measures.by_size = measures_of(by_size);
  measures.by_queue = measures_of(by_queue);
  measures.by_class = measures_of(by_class);
  measures.gpu_hours_useful = gpu_hours(useful);
  measures.gpu_hours_lost = gpu_hours(lost);
}

// First submission, last submission, last completion.
struct Span {
  std::int64_t first_ms = std::numeric_limits<std::int64_t>::max();
  std::int64_t last_submit_ms = 0;
  std::int64_t last_finish_ms = 0;
};

Span span_of(const std::vector<JobOutcome>& jobs, std::int64_t end_ms) {
  Span span;
  for (const JobOutcome& job : jobs) {
    span.first_ms = std::min(span.first_ms, job.submit_ms);
    span.last_submit_ms = std::max(span.last_submit_ms, job.submit_ms);
    span.last_finish_ms = std::max(span.last_finish_ms, job.finish_ms.value_or(0));
    if (job.job_end == JobEnd::kRunning) span.last_finish_ms = std::max(span.last_finish_ms, end_ms);
  }
  return span;
}

// A run that does not compute fragmentation leaves it at 0 throughout, which says nothing.
template <class Sample>
bool states_fragmentation(const std::vector<Sample>& samples) {
  return std::any_of(samples.begin(), samples.end(), [](const Sample& s) { return s.fragmented_gpu_milli != 0; });
}

void measure_fleet(const std::vector<FleetSample>& fleet, const Span& span, RunMeasures& measures) {
  const auto over = [&](std::int64_t until, auto value) { return integral(fleet, span.first_ms, until, value); };
  const auto allocated = [](const FleetSample& sample) { return sample.allocated_gpu_milli; };
  const auto capacity = [](const FleetSample& sample) { return sample.capacity_gpu_milli; };
  const auto fragmented = [](const FleetSample& sample) { return sample.fragmented_gpu_milli; };
  const std::int64_t arrivals_end = std::max(span.last_submit_ms, span.first_ms + 1);
  const std::int64_t finish = std::max(span.last_finish_ms, arrivals_end);
  const Int128 capacity_time = over(arrivals_end, capacity);
  const Int128 allocated_time = over(arrivals_end, allocated);
  measures.gpu_allocation_pct = percent_of(allocated_time, capacity_time);
  if (states_fragmentation(fleet)) {
    measures.fragmentation_pct = percent_of(over(arrivals_end, fragmented), capacity_time);
    measures.fragmentation_of_idle_pct = percent_of(over(arrivals_end, fragmented), capacity_time - allocated_time);
  }
  measures.utilization_pct = percent_of(over(finish, allocated), over(finish, capacity));
  const Int128 queued = over(finish, [](const FleetSample& sample) { return sample.waiting_jobs; });
  measures.mean_queue_length = static_cast<double>(queued) / static_cast<double>(finish - span.first_ms);
  std::int64_t longest = 0;
  for (const FleetSample& sample : fleet) longest = std::max(longest, sample.waiting_jobs);
  measures.max_queue_length = longest;
}

// The mean of the samples whose arrived load rounds to `percent` of capacity, as the published cells are.
std::optional<double> allocation_at(const std::vector<ArrivalSample>& arrivals, std::int64_t capacity,
                                    std::int64_t percent) {
  Int128 sum = 0;
  std::int64_t count = 0;
  for (const ArrivalSample& sample : arrivals) {
    if (rounded_percent(sample.arrived_gpu_milli, capacity) != percent) continue;
    sum += sample.allocated_gpu_milli;
    ++count;
  }
  if (count == 0) return std::nullopt;
  return percent_of(sum, Int128{capacity} * count);
}

void measure_arrivals(const MeasureInput& run, RunMeasures& measures) {
  const ArrivalSample& last = run.arrivals.back();
  const std::int64_t capacity = run.capacity_gpu_milli;
  measures.gpu_allocation_pct = percent_of(last.allocated_gpu_milli, capacity);
  measures.gpu_allocation_at_100_pct = allocation_at(run.arrivals, capacity, 100);
  measures.gpu_allocation_at_130_pct = allocation_at(run.arrivals, capacity, 130);
  if (!states_fragmentation(run.arrivals)) return;
  measures.fragmentation_pct = percent_of(last.fragmented_gpu_milli, capacity);
  measures.fragmentation_of_idle_pct = percent_of(last.fragmented_gpu_milli, capacity - last.allocated_gpu_milli);
}

}  // namespace

std::int64_t rounded_percent(std::int64_t part, std::int64_t whole) {
  return static_cast<std::int64_t>((Int128{part} * 200 + whole) / (Int128{whole} * 2));
}

RunMeasures measure_run(const MeasureInput& run) {
  RunMeasures measures;
  measure_jobs(run.jobs, run.end_ms, measures);
  measures.refused += run.dropped;
  const Span span = span_of(run.jobs, run.end_ms);
  if (!run.jobs.empty()) {
    measures.makespan_s = static_cast<double>(std::max<std::int64_t>(0, span.last_finish_ms - span.first_ms)) / 1000;
    if (!run.fleet.empty()) measure_fleet(run.fleet, span, measures);
  }
  measures.in_order = !run.arrivals.empty() && run.jobs.empty();
  if (measures.in_order) measures.jobs = static_cast<std::int64_t>(run.arrivals.size());
  if (!run.arrivals.empty() && run.capacity_gpu_milli > 0) measure_arrivals(run, measures);
  const FairnessSummary fairness = summarize_fairness(run.fairness, run.end_ms);
  measures.jain_index = fairness.jain;
  measures.mean_share_gap_pct = fairness.mean_gap_pct;
  measures.max_share_gap_pct = fairness.max_gap_pct;
  measures.guarantee_violation_s = fairness.violation_s;
  measures.guarantee_shortfall_gpu_h = fairness.shortfall_gpu_h;
  measures.guarantee_unserved_s = static_cast<double>(run.guarantees_breached.unserved_ms) / 1000;
  measures.guarantee_leaving_s = static_cast<double>(run.guarantees_breached.leaving_ms) / 1000;
  measures.guarantee_no_place_s = static_cast<double>(run.guarantees_breached.no_place_ms) / 1000;
  measures.guarantee_breached_s =
      measures.guarantee_unserved_s + measures.guarantee_leaving_s + measures.guarantee_no_place_s;
  if (run.energy) {
    measures.energy_busy_kwh = static_cast<double>(run.energy->busy_wh) / 1000;
    measures.energy_kwh = static_cast<double>(run.energy->busy_wh + run.energy->idle_wh) / 1000;
  }
  return measures;
}

}  // namespace berth::sim
