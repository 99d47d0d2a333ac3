#include "api/routes/log_access.h"

#include <future>
#include <memory>
#include <utility>

#include "api/routes/access.h"
#include "api/routes/request_reading.h"
#include "base/utf8.h"

namespace berth::api {

Result<std::string> break_glass_reason(const http::Request& request) {
  const auto stated = request.query_value(kBreakGlassParameter);
  if (!stated) return std::string();
  if (!is_plain_line(*stated) || stated->size() > kLongestBreakGlassReason)
    return invalid("break_glass needs a reason: 1 to 200 bytes on one line, which the owner of the job reads");
  const std::size_t begin = stated->find_first_not_of(' ');
  return stated->substr(begin, stated->find_last_not_of(' ') + 1 - begin);
}

bool LogAccess::was_noted(const std::string& key, Timestamp now) {
  const std::lock_guard lock(mutex_);
  const Timestamp* last = noted_.find(key);
  return last != nullptr && now - *last < kOncePerMs;
}

void LogAccess::keep(const std::string& key, Timestamp now) {
  const std::lock_guard lock(mutex_);
  if (Timestamp* last = noted_.find(key)) {
    *last = now;
    return;
  }
  if (noted_.full()) noted_.drop_oldest();
  noted_.add(key, now);
}

Result<void> LogAccess::note(Service& service, const http::Request& request, JobId job) {
  auto reason = break_glass_reason(request);
  if (!reason) return reason.error();
  const auto about = job_object(service, job);
  if (!about) return not_found("no such job " + std::to_string(job.value()));
  // Where a role covers the log, no glass is broken: a reason is then neither kept nor shown.
  if (policy::authorize(request.principal, policy::Verb::kReadLog, {about->queue, about->owner, job}).allowed)
    reason->clear();
  if (reason->empty() && about->owner == request.principal.user) return {};
  const std::string key = request.subject + "\n" + std::to_string(job.value()) + "\n" + *reason;
  const Timestamp now = service.facts().clock.time;
  if (was_noted(key, now)) return {};
  const auto noted = std::make_shared<std::promise<Result<void>>>();
  auto answer = noted->get_future();
  service.submit(origin_of(request), NoteLogRead{{job, about->queue, about->owner, request.subject, *reason}},
                 [noted](const Result<control::Reply>& reply) {
                   noted->set_value(reply ? Result<void>() : Result<void>(reply.error()));
                 });
  if (answer.wait_for(kLongestWait) != std::future_status::ready)
    return Error{ErrorCode::kUnavailable, "that the log is read could not be written down in time; try again"};
  if (auto written = answer.get(); !written) return written;
  keep(key, now);
  return {};
}

}  // namespace berth::api
