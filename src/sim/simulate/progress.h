#pragma once
// How much of its work a job has done, saved and lost, told from the events alone. A job saves as its contract (from
// the overlay) says: periodically, and when it is asked to leave; a job without a contract keeps nothing. A restart
// costs the contract's restart time before work goes on.

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

  // What an execution that begins now will do.
  backend::TaskScript script_for(JobId job) const;
  // Useful run that the job has behind it at `now_ms`: what it saved, or what the attempt that still runs reached.
  std::int64_t kept_ms(std::uint32_t job, std::int64_t now_ms) const;
  // Time that the job held its GPUs without getting on, so far.
  std::int64_t lost_ms(std::uint32_t job) const { return jobs_[job].lost_ms; }

 private:
  struct OneJob {
    std::int64_t saved_ms = 0;             // useful run that nothing can take away
    std::int64_t saved_before_ms = 0;      // at the start of this attempt
    std::int64_t restart_ms = 0;           // of this attempt, before its work goes on
    std::int64_t started_ms = 0;           // of this attempt
    std::optional<std::int64_t> asked_ms;  // to leave, in this attempt
    std::int64_t lost_ms = 0;
    bool runs = false;
  };
  static std::int64_t done_ms(const OneJob& job, std::int64_t now_ms);

  const Workload& workload_;
  const Submissions& submissions_;
  std::vector<OneJob> jobs_;
};

}  // namespace berth::sim
