#include "daemon/history_codec.h"

#include <string>
#include <utility>

#include "base/codec.h"

namespace berth::daemon {

namespace {

struct SavedFinishedJob {
  state::JobState job;
  JobFinished how;
  Timestamp finished;
  static constexpr auto fields() {
    return field_list(field("job", &SavedFinishedJob::job), field("how", &SavedFinishedJob::how),
                      field("finished", &SavedFinishedJob::finished));
  }
};

}  // namespace

store::HistoryRow to_history(const control::FinishedJob& finished_job) {
  store::HistoryRow row;
  row.job_id = finished_job.job.id.value();
  row.finished = finished_job.finished;
  row.bytes = encode(SavedFinishedJob{finished_job.job, finished_job.how, finished_job.finished});
  return row;
}

Result<control::FinishedJob> to_finished_job(const store::HistoryRow& row) {
  auto saved = decode<SavedFinishedJob>(row.bytes);
  if (!saved)
    return Error{ErrorCode::kCorrupt, "the history of job " + std::to_string(row.job_id) + " does not decode"};
  return control::FinishedJob{std::move(saved->job), std::move(saved->how), saved->finished};
}

}  // namespace berth::daemon
