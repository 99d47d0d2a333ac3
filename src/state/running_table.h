#pragma once
// RunningTable: one row for each running job, with what searches need: whether it may be evicted, at what loss, and
// when it ends. A search reads every row, so rows are small and hold no pointers. A job that is not `plain` is looked
// up. The order of the rows depends on history, so no decision may depend on it.
//
// It is an index: it follows from the jobs and is no part of the state's digest.

#include <cstdint>
#include <span>
#include <vector>

#include "base/timestamp.h"
#include "model/ids.h"
#include "state/job_state.h"

namespace berth::state {

struct RunningRow {
  JobId job;
  QueueId queue;
  std::int32_t priority = 0;
  Timestamp started;
  Timestamp saved;                     // work before this is not lost on eviction: last checkpoint, or start
  Timestamp end = Timestamp::never();  // deadline of its stop, time limit, or stated estimate
  // Like `end`, but with the run time that was expected at its start; the start itself if none was known.
  Timestamp expected;
  std::int64_t gpu_milli = 0;  // of all tasks
  std::uint64_t within = 0;    // of the first charge: bit = depth
  Seq order = 0;               // of the first charge
  std::uint64_t likeness = 0;  // equal for jobs that use the same learned run times (state/run_times.h)
  std::uint32_t tasks = 0;
  bool plain = false;      // one charge, not scaled up, no replica or element, not evicted or moved last time
  bool on_signal = false;  // it saves its work when it is asked to stop
  bool stopping = false;
  bool timed = false;  // it has a time limit or the whole job was asked to stop: its end may be certain
  bool operator==(const RunningRow&) const = default;
};

// Returns the row for a job. Requires that the job has an attempt.
RunningRow running_row(const JobState& job);

class RunningTable {
 public:
  std::span<const RunningRow> rows() const { return rows_; }
  std::size_t timed() const { return timed_; }  // number of timed rows
  // Adds or updates the row of a job. Requires that the job has an attempt.
  void set(JobState& job);
  // Removes the row of a job whose attempt is about to end. The last row moves into its place; `job_of` returns that
  // row's job by id.
  template <class Jobs>
  void erase(JobState& job, Jobs&& job_of) {
    const std::uint32_t row = job.running_row;
    if (rows_[row].timed) --timed_;
    if (row + 1 != rows_.size()) {
      rows_[row] = rows_.back();
      job_of(rows_[row].job).running_row = row;
    }
    rows_.pop_back();
    job.running_row = kNoRow;
  }
  // Returns true if the row of the job is up to date.
  bool describes(const JobState& job) const {
    return job.running_row < rows_.size() && rows_[job.running_row] == running_row(job);
  }

 private:
  std::vector<RunningRow> rows_;
  std::size_t timed_ = 0;
};

}  // namespace berth::state
