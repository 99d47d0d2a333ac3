#pragma once
// Estimates: how long a job will run, and where the estimate comes from. A time limit is a hard estimate, because the
// job is stopped when it reaches its limit. An estimate stated by the user, or learned from the run times of similar
// jobs, is soft.

#include <cstdint>
#include <string>
#include <unordered_map>  // allowed: looked up by key, never walked

#include "base/timestamp.h"
#include "state/state.h"

namespace berth::state {

struct Estimate {
  EstimateSource source = EstimateSource::kNone;
  std::int64_t seconds = 0;
  LearnedRunTime learned;  // set if the source is kLearned

  bool known() const { return source != EstimateSource::kNone; }
};

// A learned estimate is this percentile of the run times of similar jobs.
inline constexpr std::int64_t kLearnedPercent = 75;

// Returns the estimate for a spec: its time limit, else the stated estimate, else a learned one. A service without a
// time limit has no estimate.
Estimate estimate(const State& state, const JobSpec& spec);

// Returns the estimate for a job. Services and their replicas have none, because they run until they are stopped.
Estimate estimate(const State& state, const JobState& job);

// Returns the expected run time in seconds; 0 if it is unknown. It is the estimate of the last start, or of the
// submission if the job has not started. If nothing was known then, it is the estimate of now.
std::int64_t expected_run_s(const State& state, const JobState& job);

// Returns how long a job may go on after its time limit, in milliseconds: its grace, if it saves its work when it is
// asked to stop. 0 if it does not save, or has no time limit.
std::int64_t grace_after_limit_ms(const State& state, const JobState& job);

// Returns when the running job is expected to end; never() if nothing is known. A stopping job ends at the deadline of
// its stop, and a job with a time limit at its limit, or its grace after that if it saves. Any other job ends after its
// expected run time. A job that has run longer than expected ends when similar jobs did that ran longer too. If no such
// job is known, it is expected to run as long again as it has run so far.
Timestamp expected_end(const State& state, const JobState& job, Timestamp now);
// Returns a lower bound of expected_end(), from the row alone. It saves the look-up of learned run times.
Timestamp expected_end_at_least(const RunningRow& row, Timestamp now);

// Computes expected_end() for many rows. Learned run times are looked up once for all similar jobs. Requires that the
// state does not change meanwhile.
class ExpectedEnds {
 public:
  ExpectedEnds(const State& state, Timestamp now) : state_(state), now_(now) {}
  Timestamp of(const RunningRow& row);

 private:
  std::int64_t learned_s(const RunningRow& row, std::int64_t already_s);  // 0 if nothing is learned

  const State& state_;
  Timestamp now_;
  std::unordered_map<std::uint64_t, RunTimes::Alike> alike_;  // allowed: looked up by key, never walked
};

// Returns true if the expected end of the job is certain, because berth stops the job then: it has a time limit, or it
// is already asked to stop.
bool ends_for_certain(const State& state, const JobState& job);

// Returns text such as "2h30m (learned from 12 jobs alike in user, queue and size)".
std::string estimate_text(const Estimate& estimate);

}  // namespace berth::state
