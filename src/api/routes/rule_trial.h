#pragma once
// A trial of admission rules: which of the jobs that there were would have broken them. Pure.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/timestamp.h"
#include "model/admission.h"
#include "model/ids.h"
#include "state/job_state.h"

namespace berth::api {

class RuleTrial {
 public:
  static constexpr std::size_t kMostJobs = 1'000'000;
  static constexpr std::size_t kMostListed = 1000;

  struct Count {
    AdmissionRule rule;
    std::int64_t jobs = 0;  // that break it
    std::int64_t gpu_milli = 0;
    std::int64_t not_known = 0;  // jobs of pods of which it is not known what they ask for: all but that was tried
  };
  // A job and a rule that it breaks.
  struct Broken {
    JobId job;
    std::string name;
    std::string queue;
    std::string user;
    Timestamp submitted;
    std::string rule;
    std::vector<std::string> breaks;
  };

  // Of the jobs in `queue` and below it. With which role a job was submitted is not known: a rule for some roles is
  // tried on all jobs.
  RuleTrial(std::string queue, std::vector<AdmissionRule> rules);

  // Replicas and elements are passed over: they are no submissions.
  void add(const state::JobState& job);

  bool full() const { return looked_at_ >= kMostJobs; }
  std::size_t looked_at() const { return looked_at_; }
  std::size_t refused() const { return refused_; }  // jobs that break a rule that is enforced
  const std::vector<Count>& counts() const { return counts_; }
  const std::vector<Broken>& broken() const { return broken_; }  // the first kMostListed
  std::size_t not_listed() const { return not_listed_; }

 private:
  bool breaks(Count& count, const state::JobState& job);

  std::string queue_;
  std::vector<Count> counts_;
  std::vector<Broken> broken_;
  std::size_t looked_at_ = 0;
  std::size_t refused_ = 0;
  std::size_t not_listed_ = 0;
};

}  // namespace berth::api
