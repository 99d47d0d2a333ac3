#pragma once
// How much work each job has done, saved and lost, computed from the events alone. A job saves as its checkpoint
// contract (from the overlay) says: periodically, and when it is asked to leave. A job without a contract saves
// nothing. After a restart, work goes on when the restart time of the contract has passed.

#include <cstdint>
#include <optional>
#include <vector>

#include "backend/fake/fake_backend.h"
#include "model/event.h"
#include "sim/simulate/fleet_view.h"
#include "sim/simulate/workload.h"

namespace berth::sim {

class Progress {
 public:
  Progress(const Workload& workload, const Submissions& submissions)
      : workload_(workload), submissions_(submissions), jobs_(workload.jobs.size()) {}

  void on_record(const EventRecord& record);

  // Returns the script of an execution that begins now.
  backend::TaskScript script_for(JobId job) const;
  // Returns the useful run time of the job at `now_ms`: the saved part, or, while an attempt runs, what it has reached.
  std::int64_t kept_ms(std::uint32_t job, std::int64_t now_ms) const;
  // Returns the time for which the job held its GPUs without progress, so far.
  std::int64_t lost_ms(std::uint32_t job) const { return jobs_[job].lost_ms; }

 private:
  struct OneJob {
    std::int64_t saved_ms = 0;             // saved useful run time
    std::int64_t saved_before_ms = 0;      // at the start of this attempt
    std::int64_t restart_ms = 0;           // restart time of this attempt
    std::int64_t started_ms = 0;           // start of this attempt
    std::optional<std::int64_t> asked_ms;  // when this attempt was asked to leave
    std::int64_t lost_ms = 0;
    bool runs = false;
  };
  static std::int64_t done_ms(const OneJob& job, std::int64_t now_ms);

  const Workload& workload_;
  const Submissions& submissions_;
  std::vector<OneJob> jobs_;
};

}  // namespace berth::sim
