#pragma once
// Words: how an explanation names jobs, queues and times for one viewer at one moment. What the viewer may not see is
// counted and not named: "job 6 and 2 jobs of other queues".

#include <cstdint>
#include <string>
#include <vector>

#include "base/timestamp.h"
#include "explain/viewer.h"
#include "state/state.h"

namespace berth::explain {

class Words {
 public:
  Words(const state::State& state, const Viewer& viewer, Timestamp now) : state_(state), viewer_(viewer), now_(now) {}

  const state::State& state() const { return state_; }
  const Viewer& viewer() const { return viewer_; }
  Timestamp now() const { return now_; }

  bool sees_job(JobId job) const;
  // "job 6"; or "a job of another queue".
  std::string job(JobId job) const;
  // "job 6 (train, queue a)"; or "a job of another queue".
  std::string job_in_full(JobId job) const;
  // "jobs 6, 7 and 8"; "job 6 and 2 jobs of other queues". At most `most` are named: "jobs 6 and 7 and 3 more".
  std::string jobs(const std::vector<JobId>& jobs, std::size_t most) const;
  // "queue a", "the cluster"; or "another queue".
  std::string queue(QueueId queue) const;
  // " (queue a)"; or nothing.
  std::string in_queue(QueueId queue) const;

  // "19:06:51 UTC", with the date if that is another day.
  std::string time(Timestamp at) const;
  // "19:06:51 UTC (in 4 min)"
  std::string time_and_span(Timestamp at) const;

 private:
  const state::State& state_;
  const Viewer& viewer_;
  Timestamp now_;
};

// "45 s", "4 min", "3 h 20 min", "5 days": rounded, for reading.
std::string span_text(std::int64_t ms);

}  // namespace berth::explain
