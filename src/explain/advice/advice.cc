#include "explain/advice/advice.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/checked.h"
#include "base/codec.h"
#include "explain/advice/rules.h"
#include "explain/text_list.h"
#include "model/document/quantity.h"

namespace berth::explain {

using state::JobState;
using state::State;

AdviceReport advise(const State& state, Timestamp now, const GpuUtilization& gpu_utilization,
                    const AdviceEffort& effort, const std::vector<FloorUse>& floor_use) {
  Survey survey(state, now, gpu_utilization, effort);
  if (survey.nodes() > 0) {
    advise_on_guarantees(survey);
    advise_on_ceilings(survey);
    advise_on_asks(survey);
    advise_on_driving(survey);
    advise_on_places(survey);
    advise_on_cuts(survey);
    advise_on_fragmentation(survey);
  }
  advise_on_jobs_above_limits(survey);
  advise_on_gangs(survey);
  advise_on_quotas(survey);
  advise_on_floors(survey, floor_use);
  return std::move(survey).report(effort.of_a_code);
}

Survey::Survey(const State& state, Timestamp now, const GpuUtilization& gpu_utilization, const AdviceEffort& effort)
    : state_(state),
      now_(now),
      gpu_utilization_(gpu_utilization),
      nodes_(state.nodes_in(NodeStatus::kReady) + state.nodes_in(NodeStatus::kUnknown)),
      looks_left_(effort.looks) {
  state.jobs().for_each([&](const JobState& job) {
    if (job.is_parent()) return;
    if (jobs_.size() < effort.jobs) {
      jobs_.push_back(&job);
    } else {
      complete_ = false;
    }
  });
}

bool Survey::look(std::size_t at) {
  if (looks_left_ < static_cast<std::int64_t>(at)) {
    complete_ = false;
    return false;
  }
  looks_left_ -= static_cast<std::int64_t>(at);
  return true;
}

AdviceReport Survey::report(std::size_t of_a_code) && {
  std::stable_sort(said_.begin(), said_.end(), [](const auto& a, const auto& b) {
    return std::tie(a.second.severity, a.second.code, b.first, a.second.name) <
           std::tie(b.second.severity, b.second.code, a.first, b.second.name);
  });
  AdviceReport report;
  report.complete = complete_;
  std::map<AdviceCode, std::size_t> told;
  for (auto& [weight, advice] : said_) {
    if (++told[advice.code] <= of_a_code) report.items.push_back(std::move(advice));
  }
  for (const auto& [code, count] : told) {
    if (count > of_a_code) report.left_out.emplace_back(code, count - of_a_code);
  }
  return report;
}

RequestKey request_key(const JobState& job, std::size_t index) {
  const TaskGroup& group = job.spec.groups[index];
  Encoder key;
  key.put(group.request);
  key.put(group.pool);
  key.put(group.node_selector);
  key.put(group.tolerations);
  key.put(group.node_rules);
  key.put(group.numa);
  key.put(!group.image.empty());
  key.put(job.spec.job_class);
  key.put(job.spec.exclusive);
  return {job.queue, key.take()};
}

std::string amount_words(const State& state, std::size_t dim, std::int64_t amount) {
  if (dim == kDimMemory) return document::memory_text(amount) + " of memory";
  const std::string number = document::milli_text(amount);
  if (dim == kDimCpu) return number + (amount == kMilli ? " CPU" : " CPUs");
  const std::string gpus = number + (amount == kMilli ? " GPU" : " GPUs");
  return dim < kDimFirstModel ? gpus : gpus + " of " + state.gpu_models()[dim - kDimFirstModel].name;
}

std::string percent_words(std::int64_t part, std::int64_t whole) {
  return document::milli_text(static_cast<std::int64_t>(Int128{part} * 1000 / whole) * 100) + " %";
}

std::string tenths_words(std::int64_t milli) { return document::milli_text(milli - milli % 100); }

std::string gpus_words(std::int64_t milli) {
  const std::string tenths = tenths_words(milli);
  return tenths + (tenths == "1" ? " GPU" : " GPUs");
}

std::string jobs_words(const std::vector<JobId>& jobs) {
  constexpr std::size_t kNamed = 3;
  std::vector<std::string> words;
  for (std::size_t i = 0; i < jobs.size() && (i < kNamed || jobs.size() == kNamed + 1); ++i) {
    words.push_back(std::to_string(jobs[i].value()));
  }
  if (words.size() < jobs.size()) words.push_back(std::to_string(jobs.size() - words.size()) + " more");
  return (jobs.size() == 1 ? "job " : "jobs ") + listed(words, [](const std::string& word) { return word; });
}

}  // namespace berth::explain
