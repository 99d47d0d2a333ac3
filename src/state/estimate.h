#pragma once
// Estimates: how long a job will run, and where that is known from. A time limit is hard, because the job is stopped
// then; what its owner stated or what was learned from the runs of others is soft.

#include <cstdint>
#include <string>
#include <unordered_map>  // allowed: looked up by key, never walked

#include "base/timestamp.h"
#include "state/state.h"

namespace berth::state {

struct Estimate {
  EstimateSource source = EstimateSource::kNone;
  std::int64_t seconds = 0;
  LearnedRunTime learned;  // source learned

  bool known() const { return source != EstimateSource::kNone; }
  bool hard() const { return source == EstimateSource::kTimeLimit; }
};

// Of what was learned, the run time that so many percent of the jobs did not exceed.
inline constexpr std::int64_t kLearnedPercent = 75;

// The time limit if there is one, else what its owner stated, else what was learned.
Estimate estimate(const State& state, const JobSpec& spec);

// The same for a job, of which a replica of a service runs until it is stopped.
Estimate estimate(const State& state, const JobState& job);

// What was expected when it was submitted or last started, or, of one that runs since nothing was known, what is now;
// 0: unknown.
std::int64_t expected_run_s(const State& state, const JobState& job);

// When the running job is gone: the deadline of its stop, its time limit; else what was expected when it started, or,
// once it has run longer than that, what is learned from those that did too, or as long again as it has run. never()
// where nothing is known.
Timestamp expected_end(const State& state, const JobState& job, Timestamp now);
// By its row alone: not before then.
Timestamp expected_end_at_least(const RunningRow& row, Timestamp now);

// expected_end of many, by their rows: what is learned of jobs alike is looked up once. For one moment of the state.
class ExpectedEnds {
 public:
  ExpectedEnds(const State& state, Timestamp now) : state_(state), now_(now) {}
  Timestamp of(const RunningRow& row);

 private:
  std::int64_t learned_s(const RunningRow& row, std::int64_t already_s);  // 0: nothing

  const State& state_;
  Timestamp now_;
  std::unordered_map<std::uint64_t, RunTimes::Alike> alike_;  // allowed: looked up by key, never walked
};

// Whether that is so whatever happens, because it is stopped then: a time limit, or a stop that has begun.
bool ends_for_certain(const State& state, const JobState& job);

// "2h 30min (learned from 12 jobs of the same user, queue and size)"
std::string estimate_text(const Estimate& estimate);

}  // namespace berth::state
