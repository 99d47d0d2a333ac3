#include "daemon/history_codec.h"

#include <string>
#include <utility>

#include "base/codec.h"

namespace berth::daemon {

namespace {

struct SavedRetired {
  state::JobState job;
  JobFinished how;
  Timestamp finished;
  static constexpr auto fields() {
    return field_list(field("job", &SavedRetired::job), field("how", &SavedRetired::how),
                      field("finished", &SavedRetired::finished));
  }
};

}  // namespace

store::HistoryRow to_history(const control::Retired& retired) {
  store::HistoryRow row;
  row.job_id = retired.job.id.value();
  row.finished = retired.finished;
  row.bytes = encode(SavedRetired{retired.job, retired.how, retired.finished});
  return row;
}

Result<control::Retired> to_retired(const store::HistoryRow& row) {
  auto saved = decode<SavedRetired>(row.bytes);
  if (!saved)
    return Error{ErrorCode::kCorrupt, "the history of job " + std::to_string(row.job_id) + " does not decode"};
  return control::Retired{std::move(saved->job), std::move(saved->how), saved->finished};
}

}  // namespace berth::daemon
