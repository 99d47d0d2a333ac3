#pragma once
// The rules of advice, by pitfall, and what they have in common: what they look at, and where they say what they found.

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
  // That live, by id; not services and arrays, but their replicas and elements.
  const std::vector<const state::JobState*>& jobs() const { return jobs_; }
  std::size_t nodes() const { return nodes_; }  // that are not lost

  // Whether so much work for a job may still be done; it is then counted.
  bool look(std::size_t at);
  // `weight` says how heavy it is among the pieces of its code.
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

// Limits too high.
void advise_on_guarantees(Survey& survey);
void advise_on_ceilings(Survey& survey);
void advise_on_asks(Survey& survey);
void advise_on_driving(Survey& survey);
// Forgetting gang.
void advise_on_gangs(Survey& survey);
// Ignoring topology.
void advise_on_places(Survey& survey);
void advise_on_cuts(Survey& survey);
// No quotas.
void advise_on_quotas(Survey& survey);
// Not watching fragmentation.
void advise_on_fragmentation(Survey& survey);

// Equal for jobs and groups of which a task could be on the same nodes if they were empty, and ask the same there.
using AskKey = std::pair<QueueId, std::string>;
AskKey ask_key(const state::JobState& job, std::size_t group);

// "24 GPUs", "8 GPUs of H100", "64 CPUs", "512GiB of memory".
std::string amount_words(const state::State& state, std::size_t dim, std::int64_t amount);
// "12.5 %": how much `part` is of `whole`, which is not 0, in tenths, rounded down.
std::string percent_words(std::int64_t part, std::int64_t whole);
// GPUs in tenths, rounded down: "1.1"; and "1.1 GPUs", "1 GPU".
std::string tenths_words(std::int64_t milli);
std::string gpus_words(std::int64_t milli);
// "job 7", "jobs 7 and 9", "jobs 7, 8, 9 and 12 more".
std::string jobs_words(const std::vector<JobId>& jobs);
// One of the two, by how many there are.
inline std::string verb(std::size_t count, std::string_view plural, std::string_view singular) {
  return std::string(count == 1 ? singular : plural);
}

}  // namespace berth::explain
