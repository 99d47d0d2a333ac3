#include "sim/simulate/recorder.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace berth::sim {

namespace {

// Fairness is a sample of every queue, so it is taken at most so often over the time of the arrivals.
constexpr std::int64_t kFairnessSamples = 20'000;
// With thousands of queues less often: a sample has an entry for each that is busy.
constexpr std::int64_t kFairnessEntries = 10'000'000;
constexpr std::size_t kMostBars = 2'000'000;

}  // namespace

Recorder::Recorder(const Workload& workload, const Submissions& submissions, FleetView& view, const Progress& progress,
                   bool gantt)
    : workload_(workload), submissions_(submissions), view_(view), progress_(progress), gantt_(gantt) {
  result_.jobs = *workload.asked;
  for (const WorkloadQueue& queue : workload.queues) result_.queues.push_back(queue.tenant);
  for (const NodeSpec& node : workload.nodes) {
    result_.node_gpu_milli.push_back(static_cast<std::int64_t>(node.gpus.size()) * kMilli);
  }
  result_.capacity_gpu_milli = workload.capacity_gpu_milli;
  lines_.resize(workload.tree.size());
  now_.capacity_gpu_milli = workload.capacity_gpu_milli;
  std::int64_t last = 0;
  for (const WorkloadJob& job : workload.jobs) last = std::max(last, job.submit_ms);
  const auto queues = static_cast<std::int64_t>(std::max<std::size_t>(1, workload.tree.size()));
  const std::int64_t samples = std::clamp<std::int64_t>(kFairnessEntries / queues, 100, kFairnessSamples);
  fairness_step_ms_ = std::max<std::int64_t>(1000, last / samples);
}

void Recorder::waits(std::uint32_t job, int sign) {
  const WorkloadJob& one = workload_.jobs[job];
  now_.waiting_jobs += sign;
  now_.waiting_gpu_milli += sign * one.gpu_milli;
  changed_ = true;
  if (one.over_max) return;  // no policy that keeps the quotas can start it
  for (std::size_t i = workload_.queues[one.queue].place; i != TreeQueue::kNoParent; i = workload_.tree[i].parent) {
    Line& line = lines_[i];
    line.waiting_milli += sign * one.gpu_milli;
    if (workload_.tree[i].guaranteed_milli == 0) continue;
    if (sign > 0)
      line.waiting.insert(one.gpu_milli);
    else
      line.waiting.erase(line.waiting.find(one.gpu_milli));
  }
}

void Recorder::book_breaches(std::int64_t now_ms) {
  BreachTimes& times = result_.guarantees_breached;
  for (Line& line : lines_) {
    const std::int64_t ms = now_ms - std::exchange(line.last_ms, now_ms);
    if (!line.breached) continue;
    switch (*line.breached) {
      case Breach::kUnserved:
        times.unserved_ms += ms;
        break;
      case Breach::kLeaving:
        times.leaving_ms += ms;
        break;
      case Breach::kNoPlace:
        times.no_place_ms += ms;
        break;
    }
  }
}

// A guarantee is breached while a pending job would be within it. Judged exactly, at each instant at which nothing more
// can start.
void Recorder::judge_guarantees(std::int64_t now_ms, const WhyBreached& why) {
  book_breaches(now_ms);
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    Line& line = lines_[i];
    const bool breached =
        !line.waiting.empty() && line.usage_milli + *line.waiting.begin() <= workload_.tree[i].guaranteed_milli;
    line.breached = breached ? std::optional(why(i)) : std::nullopt;
  }
}

void Recorder::holds(std::uint32_t job, int sign) {
  const WorkloadJob& one = workload_.jobs[job];
  now_.running_jobs += sign;
  now_.allocated_gpu_milli += sign * one.gpu_milli;
  changed_ = true;
  for (std::size_t i = workload_.queues[one.queue].place; i != TreeQueue::kNoParent; i = workload_.tree[i].parent) {
    lines_[i].usage_milli += sign * one.gpu_milli;
  }
}

void Recorder::draw(std::uint32_t job, JobId id, std::int64_t now_ms) {
  const WorkloadJob& one = workload_.jobs[job];
  auto& bars = open_bars_[id.value()];
  for (const placement::Choice& choice : *view_.held_by(id)) {
    if (one.shape.gpus == 0) continue;
    if (bars.empty() || bars.back().node != choice.node) bars.push_back({choice.node, one.queue, 0, now_ms, now_ms});
    bars.back().gpu_milli += one.shape.total_milli();
  }
}

void Recorder::on_record(const EventRecord& record) {
  const JobId id = job_of(record.event);
  if (!id.valid()) return;
  const std::uint32_t job = submissions_.job_of(id);
  JobOutcome& outcome = result_.jobs[job];
  const std::int64_t now = record.time.ms;
  if (std::holds_alternative<JobSubmitted>(record.event) || std::holds_alternative<JobRequeued>(record.event)) {
    waits(job, +1);
  } else if (std::holds_alternative<AttemptStarted>(record.event)) {
    waits(job, -1);
    holds(job, +1);
    if (outcome.first_start_ms) ++outcome.restarts;
    if (!outcome.first_start_ms) outcome.first_start_ms = now;
    outcome.job_end = JobEnd::kRunning;
    if (gantt_) draw(job, id, now);
  } else if (const auto* began = std::get_if<StopBegan>(&record.event)) {
    if (began->cause == StopCause::kReclaim || began->cause == StopCause::kPreempt) ++outcome.preemptions;
    if (began->cause == StopCause::kConsolidate) ++outcome.moves;
  } else if (std::holds_alternative<AttemptEnded>(record.event)) {
    holds(job, -1);
    outcome.job_end = JobEnd::kWaiting;
    for (GanttBar& bar : open_bars_[id.value()]) {
      bar.end_ms = now;
      if (result_.gantt.size() < kMostBars && bar.end_ms > bar.start_ms) result_.gantt.push_back(bar);
    }
    open_bars_.erase(id.value());
  } else if (const auto* finished = std::get_if<JobFinished>(&record.event)) {
    const bool done = finished->outcome == Outcome::kSucceeded;
    outcome.job_end = done ? JobEnd::kCompleted : JobEnd::kRefused;
    if (done) outcome.finish_ms = now;
    outcome.lost_gpu_milli_ms = progress_.lost_ms(job) * outcome.gpu_milli;
  }
}

void Recorder::refuse(std::uint32_t job, const std::string& why) {
  result_.jobs[job].job_end = JobEnd::kRefused;
  count_refusal(result_, why);
}

// Returns demands by index in the tree. A demand is at most the max of its queue, and demand that the children may not
// have does not count.
std::vector<std::int64_t> Recorder::demands_now() const {
  std::vector<std::int64_t> demands(lines_.size(), 0);
  for (std::size_t i = lines_.size(); i-- > 0;) {
    const TreeQueue& stated = workload_.tree[i];
    if (stated.is_leaf) demands[i] = lines_[i].usage_milli + lines_[i].waiting_milli;
    demands[i] = std::min(demands[i], stated.max_milli);
    if (stated.parent != TreeQueue::kNoParent) demands[stated.parent] += demands[i];
  }
  return demands;
}

FairnessSample Recorder::fairness_now(std::int64_t now_ms) const {
  FairnessSample sample{now_ms, workload_.capacity_gpu_milli, {}};
  const std::vector<std::int64_t> demands = demands_now();
  std::vector<std::size_t> place_in_sample(lines_.size(), QueueSample::kNoParent);
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    const Line& line = lines_[i];
    const TreeQueue& stated = workload_.tree[i];
    if (line.usage_milli == 0 && line.waiting_milli == 0) continue;
    place_in_sample[i] = sample.queues.size();
    sample.queues.push_back(
        {line.usage_milli, demands[i], stated.guaranteed_milli, stated.weight,
         stated.parent == TreeQueue::kNoParent ? QueueSample::kNoParent : place_in_sample[stated.parent]});
  }
  return sample;
}

// A change within one step of the last sample is held back until the step is over or the next change comes. So a long
// sample shows values that were valid for nearly all of its time.
void Recorder::sample_fairness(std::int64_t now_ms) {
  auto& samples = result_.fairness;
  if (!samples.empty() && now_ms < samples.back().at_ms + fairness_step_ms_) {
    held_back_ = fairness_now(now_ms);
    return;
  }
  if (held_back_) {
    held_back_->at_ms = samples.back().at_ms + fairness_step_ms_;
    if (held_back_->at_ms < now_ms) samples.push_back(std::move(*held_back_));
    held_back_.reset();
  }
  samples.push_back(fairness_now(now_ms));
}

void Recorder::sample(std::int64_t now_ms, const WhyBreached& why) {
  if (!changed_) return;
  changed_ = false;
  judge_guarantees(now_ms, why);
  now_.at_ms = now_ms;
  now_.fragmented_gpu_milli = view_.fragmented_gpu_milli();
  if (!result_.fleet.empty() && result_.fleet.back().at_ms == now_ms) {
    result_.fleet.back() = now_;
  } else {
    result_.fleet.push_back(now_);
  }
  sample_fairness(now_ms);
}

RunResult Recorder::finish() {
  std::int64_t end_ms = result_.fleet.empty() ? 0 : result_.fleet.back().at_ms;
  for (const WorkloadJob& job : workload_.jobs) end_ms = std::max(end_ms, job.submit_ms);
  result_.end_ms = end_ms;
  book_breaches(end_ms);
  for (std::uint32_t index = 0; index < workload_.jobs.size(); ++index) {
    JobOutcome& outcome = result_.jobs[index];
    if (outcome.job_end == JobEnd::kCompleted) continue;
    outcome.lost_gpu_milli_ms = progress_.lost_ms(index) * outcome.gpu_milli;
    outcome.done_ms = progress_.kept_ms(index, end_ms);
  }
  return std::move(result_);
}

}  // namespace berth::sim
