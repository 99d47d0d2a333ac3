// What a job's tasks wrote.

#include <limits>
#include <memory>

#include "api/routes/log_access.h"
#include "api/routes/request_reading.h"
#include "api/routes/route_groups.h"

namespace berth::api {
namespace {

using http::Access;
using http::integer_parameter;
using http::Method;
using http::query_parameter;
using http::Request;
using http::Responder;

constexpr std::int64_t kDefaultLogBytes = 64 * 1024;
constexpr std::int64_t kMaxLogBytes = 1024 * 1024;

using LogQuery = Service::LogQuery;  // attempt 0: the current or last one

Result<LogQuery> log_query_of(const Request& request) {
  const auto job = job_id_of(request);
  if (!job) return job.error();
  return LogQuery{.job = job.value(),
                  .attempt = static_cast<std::uint32_t>(integer_of(request, "attempt", 0)),
                  .task = static_cast<std::uint32_t>(integer_of(request, "task", 0)),
                  .error_stream = text_of(request, "stream") == "stderr",
                  .from = integer_of(request, "from", 0),
                  .max_bytes = integer_of(request, "limit", kDefaultLogBytes)};
}

std::uint32_t last_attempt(const state::JobState& job) {
  if (job.attempt) return job.attempt->number;
  return job.past.empty() ? 0 : job.past.back().number;
}

// What there is to read of a job. An attempt or task that was not is no file to look for.
struct Extent {
  std::uint32_t attempts = 0;
  std::uint32_t tasks = 0;
  bool parent = false;
};

Extent extent_of(const state::JobState& job) {
  Extent extent{last_attempt(job), 0, job.is_parent()};
  for (const TaskGroup& group : job.spec.groups) extent.tasks += static_cast<std::uint32_t>(group.count);
  return extent;
}

Result<Extent> extent_of(Service& service, JobId id) {
  std::optional<Extent> live;
  service.read([&](const View& view) {
    if (const state::JobState* job = view.state.job(id)) live = extent_of(*job);
  });
  if (live) return *live;
  const auto past = service.past_job(id);
  if (!past) return past.error();
  return extent_of(past.value().job);
}

Result<void> check_range(const LogQuery& query, const Extent& extent) {
  const std::string job = "job " + std::to_string(query.job.value());
  if (extent.parent) {
    return not_found(job + " has no output of its own: ask for a replica or element, which are jobs with parent " +
                     std::to_string(query.job.value()));
  }
  if (query.task >= extent.tasks) {
    return not_found(
        job + " has no task " + std::to_string(query.task) + "; " +
        (extent.tasks == 1 ? "its only one is 0" : "its tasks are 0 to " + std::to_string(extent.tasks - 1)));
  }
  if (query.attempt > extent.attempts) {
    return not_found(job + " has no attempt " + std::to_string(query.attempt) + "; it has had " +
                     std::to_string(extent.attempts));
  }
  return {};
}

http::Response log_answer(const Service::LogPart& part, std::uint32_t attempt) {
  return {.status = 200,
          .content_type = "application/octet-stream",
          .headers = {{"Berth-Log-From", std::to_string(part.from)},
                      {"Berth-Log-Next", std::to_string(part.next)},
                      {"Berth-Log-Attempt", std::to_string(attempt)},
                      {"Berth-Log-Complete", part.complete ? "true" : "false"}},
          .body = part.bytes};
}

// Returns what to ask for, with the attempt named; it is 0 if the job has not started yet.
Result<LogQuery> read_query(Service& service, const Request& request) {
  auto query = log_query_of(request);
  if (!query) return query;
  const auto extent = extent_of(service, query->job);
  if (!extent) return extent.error();
  if (auto ok = check_range(*query, *extent); !ok) return ok.error();
  if (query->attempt == 0) query->attempt = extent->attempts;
  return query;
}

void get_log(Service& service, LogAccess& access, const Request& request, const Responder& responder) {
  const auto query = read_query(service, request);
  if (!query) {
    responder.fail(query.error());
    return;
  }
  if (const auto noted = access.note(service, request, query->job); !noted) {
    responder.fail(noted.error());
    return;
  }
  const std::uint32_t attempt = query->attempt;
  if (attempt == 0) {
    responder.send(log_answer({}, 0));
    return;
  }
  service.task_log(*query, [responder, attempt](const Result<Service::LogPart>& part) {
    if (part) {
      responder.send(log_answer(*part, attempt));
    } else {
      responder.fail(part.error());
    }
  });
}

}  // namespace

void add_job_log_routes(http::Router& router, Service& service) {
  http::ParameterDoc stream = query_parameter("stream", "Which output; stdout if absent.");
  stream.values = {"stdout", "stderr"};
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kMost32 = std::numeric_limits<std::int32_t>::max();
  router.add(
      {.method = Method::kGet,
       .pattern = "/v1/jobs/{id}/logs",
       .access = Access::kToken,
       .threads = http::Threads::kReads,
       .doc = {.operation_id = "getJobLog",
               .summary = "What a task of a job wrote, byte by byte.",
               .responses = {{.status = 200,
                              .description = "The bytes. Berth-Log-From and Berth-Log-Next are the offsets of the "
                                             "first one and of the one after the last; Berth-Log-Attempt names the "
                                             "attempt; Berth-Log-Complete is true when no more will come.",
                              .schema = {},
                              .content_type = "application/octet-stream"},
                             {.status = 404, .description = "There is no such job, attempt or task."}},
               .description = "To follow a log ask again from Berth-Log-Next until Berth-Log-Complete is true.",
               .tags = {"jobs"},
               .parameters =
                   {job_parameter(),
                    integer_parameter("attempt", "Which attempt; the current or last one if absent.", 1, kMost32),
                    integer_parameter("task", "Which task; 0 if absent.", 0, kMost32), stream,
                    integer_parameter("from", "First byte; a negative one counts from the end.", -kMost, kMost),
                    integer_parameter("limit", "At most so many bytes; 65536 if absent.", 1, kMaxLogBytes),
                    query_parameter(kBreakGlassParameter,
                                    "Why the log of a job is read that no role of yours covers; takes the verb "
                                    "break-glass. It is in the audit, and the owner of the job sees it.")}},
       .handler = [&service, access = std::make_shared<LogAccess>()](const Request& request, const Responder& to) {
         get_log(service, *access, request, to);
       }});
}

}  // namespace berth::api
