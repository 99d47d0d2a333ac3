#pragma once
// RunningTable: what searches ask of everything that runs, side by side: who may be stopped and at what loss, what ends
// when. Such a search looks at every row, so a row is small and follows no pointer; what is not plain is looked up in
// the job. The order of the rows depends on the past, so nothing may depend on it.
//
// This is an index: it follows from the jobs and is no part of the state's digest.

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
  Timestamp saved;                     // work up to then is not lost when it stops: its last checkpoint, or the start
  Timestamp end = Timestamp::never();  // the deadline of its stop, its time limit, or its estimate
  Timestamp expected;                  // likewise, but what was expected when it started; the start where nothing was
  std::int64_t gpu_milli = 0;          // of all tasks
  std::uint64_t within = 0;            // of the first charge: bit = depth
  Seq order = 0;                       // of the first charge
  std::uint64_t likeness = 0;          // of run times: equal where what is learned is the same (state/run_times.h)
  std::uint32_t tasks = 0;
  bool plain = false;      // one charge, nothing grown, of no service or array, not evicted the last time
  bool on_signal = false;  // it saves when it is asked to leave
  bool stopping = false;
  bool timed = false;  // it has a time limit or was asked to stop as a whole: its end may be certain
  bool operator==(const RunningRow&) const = default;
};

RunningRow running_row(const JobState& job);

class RunningTable {
 public:
  std::span<const RunningRow> rows() const { return rows_; }
  std::size_t timed() const { return timed_; }  // so many rows are
  // The job has an attempt: it is new, or something of it has changed.
  void set(JobState& job);
  // Its attempt is about to end. `moved` is given the job whose row takes its place.
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
  // Whether the job's row is as it would be if it were written now.
  bool describes(const JobState& job) const {
    return job.running_row < rows_.size() && rows_[job.running_row] == running_row(job);
  }

 private:
  std::vector<RunningRow> rows_;
  std::size_t timed_ = 0;
};

}  // namespace berth::state
