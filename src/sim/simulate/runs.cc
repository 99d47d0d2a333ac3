#include "sim/simulate/runs.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "sim/simulate/run.h"

namespace berth::sim {

namespace {

struct OneRun {
  const PolicySpec* policy = nullptr;
  std::uint64_t seed = 0;
  bool gantt = false;
};

std::vector<OneRun> runs_of(const Experiment& experiment) {
  std::vector<OneRun> runs;
  for (const PolicySpec& policy : experiment.policies) {
    for (const std::uint64_t seed : experiment.seeds) {
      runs.push_back({&policy, seed, seed == experiment.seeds.front()});
    }
  }
  return runs;
}

std::int64_t jobs_of_all(const Experiment& experiment) {
  const auto policies = static_cast<std::int64_t>(experiment.policies.size());
  if (experiment.arrivals.empty()) {
    return policies * static_cast<std::int64_t>(experiment.seeds.size() * experiment.workload.jobs.size());
  }
  std::int64_t jobs = 0;
  for (const std::uint64_t seed : experiment.seeds) {
    jobs += static_cast<std::int64_t>(experiment.arrivals.at(seed).size());
  }
  return policies * jobs;
}

Result<RunResult> run_one(const Experiment& experiment, const OneRun& run, std::atomic<std::int64_t>& done) {
  const RunOrder order{experiment.workload, *run.policy, run.seed, run.gantt, &done, &experiment.prices};
  return experiment.arrivals.empty() ? run_by_clock(order) : run_in_order(order, experiment.arrivals.at(run.seed));
}

}  // namespace

Result<std::vector<RunResult>> run_all(const Experiment& experiment, const OnProgress& on_progress) {
  const std::vector<OneRun> runs = runs_of(experiment);
  std::vector<std::optional<Result<RunResult>>> results(runs.size());
  std::atomic<std::size_t> next{0};
  std::atomic<std::size_t> over{0};
  std::atomic<std::int64_t> done{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < runs.size(); i = next++) {
      results[i] = run_one(experiment, runs[i], done);
      ++over;
    }
  };
  std::vector<std::thread> threads;
  const std::size_t wanted = std::clamp<std::size_t>(experiment.threads, 1, std::max<std::size_t>(1, runs.size()));
  for (std::size_t i = 0; i < wanted; ++i) threads.emplace_back(work);
  const std::int64_t all = jobs_of_all(experiment);
  auto told = std::chrono::steady_clock::now();
  while (over < runs.size()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    if (!on_progress || std::chrono::steady_clock::now() - told < std::chrono::milliseconds(200)) continue;
    told = std::chrono::steady_clock::now();
    on_progress(done, all);
  }
  for (std::thread& thread : threads) thread.join();
  if (on_progress) on_progress(done, all);
  std::vector<RunResult> finished;
  for (auto& result : results) {
    if (!*result) return result->error();
    finished.push_back(std::move(**result));
  }
  return finished;
}

}  // namespace berth::sim
