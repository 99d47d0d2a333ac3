#pragma once
// GET /v1/jobs: live jobs by a sort key, then, where they are asked for, finished ones, newest first. A cursor holds
// the key of the last item seen, so that it stays good whatever comes, goes or changes in between: no job that is there
// all the time and keeps its key is missed or seen twice. One that finishes meanwhile may be seen again among the
// finished.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/routes/views.h"
#include "api/service.h"
#include "base/fields.h"
#include "base/result.h"

namespace berth::api {

enum class JobSort { kId, kSubmitted, kPriority, kQueue, kUser, kGpus };

struct JobFilter {
  std::string queue;  // the subtree below it, itself included
  std::string user;
  std::string name;
  std::string node;  // where it runs, or ran
  std::optional<JobPhase> phase;
  std::optional<JobKind> kind;
  std::optional<JobId> parent;
  Labels labels = {};                   // all of them
  std::optional<Timestamp> since = {};  // finished not before it, or live
  std::optional<Timestamp> until = {};  // submitted before it
  // Which jobs the subject may see, by queue path and user; nothing: all.
  std::function<bool(std::string_view, std::string_view)> visible = {};
};

// The last live job seen; or that the list is among the finished ones, before this history cursor.
struct JobPosition {
  bool in_history = false;
  std::uint64_t before = 0;
  std::int64_t number = 0;
  std::string text;
  std::uint64_t id = 0;
};

struct JobQuery {
  JobFilter filter;
  JobSort sort = JobSort::kId;
  bool descending = false;
  bool live = true;
  bool finished = false;
  std::size_t limit = 100;
  std::optional<JobPosition> after;
};

struct JobPage {
  std::vector<ShownJob> jobs;
  std::optional<JobPosition> next;
  Seq seq = 0;
  Timestamp time;
};

Result<JobPage> list_jobs(Service& service, const JobQuery& query);

// A cursor is the position and the sorting it belongs to; another sorting refuses it.
std::string encode_cursor(const JobPosition& position, JobSort sort, bool descending);
Result<JobPosition> decode_cursor(const std::string& text, JobSort sort, bool descending);

}  // namespace berth::api

namespace berth {
BERTH_ENUM_NAMES(api::JobSort, "id", "submitted", "priority", "queue", "user", "gpus");
}  // namespace berth
