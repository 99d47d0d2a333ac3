// Advice by measurement: jobs that have whole GPUs and hardly use them.

#include <algorithm>
#include <optional>

#include "explain/advice/rules.h"
#include "explain/text_list.h"
#include "model/document/quantity.h"

namespace berth::explain {

using state::AttemptState;
using state::JobState;
using state::PoolState;
using state::State;

namespace {

constexpr std::int64_t kHourMs = 3'600'000;
constexpr std::int32_t kMinutes = 55;  // of the hour that must have been measured
constexpr std::int64_t kLowPercent = 30;

std::int32_t whole_gpus(const AttemptState& attempt) {
  std::size_t gpus = 0;
  for (const state::TaskState& task : attempt.tasks)
    gpus += has_gpus_whole(task.placement) ? task.placement.gpus.size() : 0;
  return static_cast<std::int32_t>(gpus);
}

// The utilization of a job that has had the same GPUs for an hour, if it was low.
const JobGpuUtilization* hardly_utilized(const Survey& survey, const JobState& job) {
  if (!job.attempt || job.attempt->stopping() || survey.now() - job.attempt->resized < kHourMs) return nullptr;
  const JobGpuUtilization* gpu_utilization = survey.gpu_utilization().of(job.id, job.attempt->number);
  if (gpu_utilization == nullptr || gpu_utilization->gpus != whole_gpus(*job.attempt) ||
      gpu_utilization->sum.minutes < kMinutes)
    return nullptr;
  return gpu_utilization->sum.percents < kLowPercent * gpu_utilization->sum.samples ? gpu_utilization : nullptr;
}

bool cuts_gpus(const State& state) {
  return std::any_of(state.gpu_models().begin(), state.gpu_models().end(),
                     [](const auto& model) { return model.mig != nullptr; });
}

// A pool open to the queue that takes only jobs of other classes.
const PoolState* pool_of_other_classes(const State& state, const JobState& job) {
  for (std::uint32_t p = 0; p < state.pools().size(); ++p) {
    const PoolState& pool = state.pools()[p];
    if (state.is_open_to(job.queue, p) && !state.may_use(job.queue, job.spec.job_class, p)) return &pool;
  }
  return nullptr;
}

// The share of a GPU that would have done as much work.
std::string remedy_of(const State& state, const JobState& job, std::int64_t work_milli) {
  constexpr std::int64_t kShares[] = {250, 500};
  const auto share = std::find_if(std::begin(kShares), std::end(kShares), [&](auto one) { return work_milli <= one; });
  std::vector<std::string> ways;
  if (share != std::end(kShares)) {
    ways.push_back("Ask a share of a GPU (`gpus: " + document::milli_text(*share) + "`)");
    if (cuts_gpus(state)) ways.push_back("a MIG instance (`mig_profile`)");
  } else {
    ways.push_back("Ask fewer GPUs (" + std::to_string((work_milli + kMilli - 1) / kMilli) + " could do as much)");
  }
  if (const PoolState* pool = pool_of_other_classes(state, job)) {
    ways.push_back("`class: " + std::string(name_of(pool->classes.front())) + "`, which pool " + pool->name + " takes");
  }
  std::string remedy;
  for (const std::string& way : ways) remedy += (remedy.empty() ? "" : ", or ") + way;
  return remedy + ", or find out what its GPUs wait for, such as data or CPUs.";
}

void say_of(Survey& survey, const JobState& job, const JobGpuUtilization& gpu_utilization) {
  const std::int64_t held_milli = gpu_utilization.gpus * kMilli;
  const std::int64_t work_milli = held_milli * gpu_utilization.sum.milli_percent() / (100 * 1000);
  const std::int64_t held_s = (survey.now() - job.attempt->resized) / 1000;
  const std::string idle = tenths_words(held_milli - work_milli);
  Advice advice{AdviceCode::kGpusUnderutilized,
                AdviceSeverity::kWarning,
                AdviceAbout::kJob,
                std::to_string(job.id.value()),
                {},
                {}};
  advice.text = "A " + std::string(name_of(job.spec.job_class)) + " job of " + job.spec.user + " in queue " +
                survey.state().queue(job.queue).path + " has had " + counted(gpu_utilization.gpus, "whole GPU") +
                " for " + document::duration_text(held_s - held_s % 60) + ", used " +
                percent_words(gpu_utilization.sum.percents, gpu_utilization.sum.samples * 100) +
                " in the last hour: of its GPU-hours in that hour " + idle + (idle == "1" ? " was" : " were") +
                " worth nothing.";
  advice.remedy = remedy_of(survey.state(), job, work_milli);
  survey.say(std::move(advice), held_milli - work_milli);
}

}  // namespace

// A job with the same whole GPUs for an hour, nearly all of it measured, that used them less than 30 %.
void advise_on_driving(Survey& survey) {
  for (const JobState* job : survey.jobs()) {
    if (const JobGpuUtilization* gpu_utilization = hardly_utilized(survey, *job))
      say_of(survey, *job, *gpu_utilization);
  }
}

}  // namespace berth::explain
