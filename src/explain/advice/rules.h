#pragma once
// The rules of advice, one function for each pitfall, and Survey: what the rules examine and where they report.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "explain/advice/advice.h"
#include "state/state.h"

namespace berth::explain {

class Survey {
 public:
  Survey(const state::State& state, Timestamp now, const GpuUtilization& gpu_utilization, const AdviceEffort& effort);

  const state::State& state() const { return state_; }
  Timestamp now() const { return now_; }
  const GpuUtilization& gpu_utilization() const { return gpu_utilization_; }
  // Live jobs by id: replicas and elements, not their services and arrays.
  const std::vector<const state::JobState*>& jobs() const { return jobs_; }
  std::size_t nodes() const { return nodes_; }  // nodes that are not lost

  // Counts work of size `at` and returns true, or returns false if the limit does not allow it.
  bool look(std::size_t at);
  // Adds one piece of advice. `weight` sorts it among the others of its code.
  void say(Advice advice, std::int64_t weight) { said_.emplace_back(weight, std::move(advice)); }

  AdviceReport report(std::size_t of_a_code) &&;

 private:
  const state::State& state_;
  Timestamp now_;
  const GpuUtilization& gpu_utilization_;
  std::vector<const state::JobState*> jobs_;
  std::size_t nodes_ = 0;
  std::int64_t looks_left_;
  bool complete_ = true;
  std::vector<std::pair<std::int64_t, Advice>> said_;
};

// Pitfall: limits and requests that are too high.
void advise_on_guarantees(Survey& survey);
void advise_on_ceilings(Survey& survey);
void advise_on_jobs_above_limits(Survey& survey);
void advise_on_asks(Survey& survey);
void advise_on_driving(Survey& survey);
void advise_on_floors(Survey& survey, const std::vector<FloorUse>& floor_use);
// Pitfall: gangs that are submitted as single jobs.
void advise_on_gangs(Survey& survey);
// Pitfall: topology that is ignored.
void advise_on_places(Survey& survey);
void advise_on_cuts(Survey& survey);
// Pitfall: no quotas.
void advise_on_quotas(Survey& survey);
// Pitfall: fragmentation that is not watched.
void advise_on_fragmentation(Survey& survey);

// Returns a key that is equal for task groups with equal requests that may use the same nodes.
using RequestKey = std::pair<QueueId, std::string>;
RequestKey request_key(const state::JobState& job, std::size_t group);

// Returns an amount in words: "24 GPUs", "8 GPUs of H100", "64 CPUs", "512GiB of memory".
std::string amount_words(const state::State& state, std::size_t dim, std::int64_t amount);
// Returns `part` of `whole` in tenths of a percent, rounded down: "12.5 %". Requires: `whole` is not 0.
std::string percent_words(std::int64_t part, std::int64_t whole);
// tenths_words returns GPUs in tenths, rounded down: "1.1". gpus_words adds the noun: "1.1 GPUs", "1 GPU".
std::string tenths_words(std::int64_t milli);
std::string gpus_words(std::int64_t milli);
// Returns "job 7", "jobs 7 and 9", or "jobs 7, 8, 9 and 12 more".
std::string jobs_words(const std::vector<JobId>& jobs);
// Returns `singular` if count is 1, else `plural`.
inline std::string verb(std::size_t count, std::string_view plural, std::string_view singular) {
  return std::string(count == 1 ? singular : plural);
}

}  // namespace berth::explain
