#include "api/routes/access.h"

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "api/http/authenticator.h"
#include "api/routes/log_access.h"
#include "api/routes/request_reading.h"
#include "base/check.h"
#include "policy/audit.h"

namespace berth::api {
namespace {

using http::Request;
using http::Responder;
using policy::Decision;
using policy::Object;
using policy::Verb;

enum class On : std::uint8_t {
  kCluster,  // the root
  kQueue,    // the queue {path}
  kParent,   // the queue above {path}
  kJob,      // the job {id}
  kItself,   // the job {id}, by the token of that job alone
  kRows,     // the handler asks for each row
  kBody,     // the handler asks for the queue in the body, so that a denial names it
  kAnyone,   // every subject that the server knows
};

struct Rule {
  std::string_view operation;
  On on;
  Verb verb;
};

constexpr std::array kRules{
    Rule{"getOpenApi", On::kAnyone, Verb::kSeeQueue},
    Rule{"getHealth", On::kAnyone, Verb::kSeeQueue},
    Rule{"getReadiness", On::kAnyone, Verb::kSeeQueue},
    Rule{"getIdentity", On::kAnyone, Verb::kSeeQueue},
    Rule{"checkAccess", On::kAnyone, Verb::kSeeQueue},
    Rule{"getCluster", On::kCluster, Verb::kSeeServer},
    Rule{"getMetrics", On::kCluster, Verb::kSeeMetrics},
    Rule{"getCapacity", On::kCluster, Verb::kSeeServer},
    Rule{"getAdvice", On::kCluster, Verb::kSeeServer},
    Rule{"getDiagnosis", On::kCluster, Verb::kSeeServer},
    Rule{"getClock", On::kCluster, Verb::kSeeServer},
    Rule{"confirmClock", On::kCluster, Verb::kConfirmClock},
    Rule{"listAudit", On::kRows, Verb::kSeeAudit},
    Rule{"getSnapshot", On::kCluster, Verb::kSeeEvents},
    Rule{"listEvents", On::kCluster, Verb::kSeeEvents},
    Rule{"getUsage", On::kRows, Verb::kSeeUsage},
    Rule{"getPrices", On::kAnyone, Verb::kSeeQueue},
    Rule{"putPrices", On::kCluster, Verb::kManageBilling},
    Rule{"diffPrices", On::kCluster, Verb::kManageBilling},
    Rule{"reportQuantities", On::kCluster, Verb::kReportQuantities},
    Rule{"listQuantities", On::kRows, Verb::kSeeUsage},
    Rule{"getBill", On::kRows, Verb::kSeeUsage},
    Rule{"tryBill", On::kRows, Verb::kSeeUsage},
    Rule{"getBillLine", On::kRows, Verb::kSeeUsage},
    Rule{"closeMonth", On::kCluster, Verb::kManageBilling},
    Rule{"correctBill", On::kCluster, Verb::kManageBilling},
    Rule{"getConfig", On::kCluster, Verb::kSeeConfig},
    Rule{"diffConfig", On::kCluster, Verb::kSeeConfig},
    Rule{"putConfig", On::kCluster, Verb::kChangeConfig},
    Rule{"listRules", On::kRows, Verb::kSeeQueue},
    Rule{"putRules", On::kRows, Verb::kManageRules},
    Rule{"testRules", On::kRows, Verb::kManageRules},
    Rule{"listQueues", On::kRows, Verb::kSeeQueue},
    Rule{"getQueue", On::kQueue, Verb::kSeeQueue},
    Rule{"explainShare", On::kParent, Verb::kSeeQueue},
    Rule{"setQueue", On::kParent, Verb::kChangeQueue},
    Rule{"previewQueueChange", On::kParent, Verb::kChangeQueue},
    Rule{"undoQueueChange", On::kParent, Verb::kChangeQueue},
    Rule{"listRoles", On::kAnyone, Verb::kSeeQueue},
    Rule{"grantRole", On::kBody, Verb::kManageRoles},
    Rule{"revokeRole", On::kBody, Verb::kManageRoles},
    Rule{"blockSubject", On::kCluster, Verb::kManageTokens},
    Rule{"unblockSubject", On::kCluster, Verb::kManageTokens},
    Rule{"listNodes", On::kCluster, Verb::kSeeNodes},
    Rule{"getNode", On::kCluster, Verb::kSeeNodes},
    Rule{"listMaintenance", On::kCluster, Verb::kSeeNodes},
    Rule{"planMaintenance", On::kCluster, Verb::kManageNodes},
    Rule{"cancelMaintenance", On::kCluster, Verb::kManageNodes},
    Rule{"cordonNode", On::kCluster, Verb::kManageNodes},
    Rule{"uncordonNode", On::kCluster, Verb::kManageNodes},
    Rule{"drainNode", On::kCluster, Verb::kManageNodes},
    Rule{"fenceNode", On::kCluster, Verb::kManageNodes},
    Rule{"submitJob", On::kBody, Verb::kSubmit},
    Rule{"forecastJob", On::kBody, Verb::kSubmit},
    Rule{"forecastPriority", On::kJob, Verb::kPrioritizeJob},
    Rule{"listJobs", On::kRows, Verb::kSeeJob},
    Rule{"getJob", On::kJob, Verb::kSeeJob},
    Rule{"explainJob", On::kJob, Verb::kSeeJob},
    Rule{"getJobLog", On::kJob, Verb::kReadLog},
    Rule{"openShell", On::kJob, Verb::kOpenShell},
    Rule{"attachTerminal", On::kJob, Verb::kOpenShell},
    Rule{"cancelJob", On::kJob, Verb::kStopJob},
    Rule{"signalJob", On::kJob, Verb::kStopJob},
    Rule{"holdJob", On::kJob, Verb::kHoldJob},
    Rule{"releaseJob", On::kJob, Verb::kHoldJob},
    Rule{"prioritizeJob", On::kJob, Verb::kPrioritizeJob},
    Rule{"moveJob", On::kJob, Verb::kMoveJob},
    Rule{"reportCheckpoint", On::kJob, Verb::kReportCheckpoint},
    Rule{"getProviderConfiguration", On::kAnyone, Verb::kSeeQueue},
    Rule{"listSigningKeys", On::kAnyone, Verb::kSeeQueue},
    Rule{"rotateSigningKeys", On::kCluster, Verb::kManageTokens},
    Rule{"createJobIdentity", On::kItself, Verb::kSeeJob},
    Rule{"listTokens", On::kCluster, Verb::kManageTokens},
    Rule{"createToken", On::kCluster, Verb::kManageTokens},
    Rule{"revokeToken", On::kCluster, Verb::kManageTokens},
};

const Rule& rule_of(const std::string& operation) {
  const auto rule =
      std::find_if(kRules.begin(), kRules.end(), [&](const Rule& one) { return one.operation == operation; });
  BERTH_CHECK(rule != kRules.end());  // every operation has a rule
  return *rule;
}

std::string parent_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

std::optional<Error> refuse_object(Service& service, const Request& request, Verb verb, const Object& object,
                                   JobId job = JobId::none()) {
  const Decision decision = policy::authorize(request.principal, verb, object);
  if (decision.allowed) return std::nullopt;
  return denial(service, request, verb, object, decision, job);
}

// A log that no role covers is read by break-glass, or not at all.
std::optional<Error> refuse_log(Service& service, const Request& request, const Object& object, JobId job) {
  if (policy::authorize(request.principal, Verb::kReadLog, object).allowed) return std::nullopt;
  const bool may_break_glass = policy::authorize(request.principal, Verb::kBreakGlass, object).allowed;
  if (may_break_glass && request.query.contains(kBreakGlassParameter)) return std::nullopt;
  auto refusal = refuse_object(service, request, Verb::kReadLog, object, job);
  if (may_break_glass)
    refusal->message += "; or state why (break_glass, `berth logs --break-glass REASON`), which its owner sees";
  return refusal;
}

// A job that the subject may not see is refused as one that does not exist.
std::optional<Error> refuse_job(Service& service, const Request& request, Verb verb) {
  if (policy::may_do_everything(request.principal)) return std::nullopt;
  const auto id = job_id_of(request);
  if (!id) return std::nullopt;  // the handler says what is wrong with it
  const auto job = job_object(service, *id);
  if (!job) return not_found("no such job " + std::to_string(id->value()));
  const Object object{job->queue, job->owner, *id};
  if (request.principal.job.valid() && job->owner_blocked) {
    note_denied(service, request, verb, object, *id);
    return Error{ErrorCode::kDenied, "the access of user:" + job->owner + ", whose job this is, was ended here"};
  }
  const bool is_blind = request.principal.saves_only && request.principal.job == *id;  // it sees not even its own job
  if (!is_blind && refuse_object(service, request, Verb::kSeeJob, object, *id))
    return not_found("no such job " + std::to_string(id->value()));
  if (verb != Verb::kReadLog) return refuse_object(service, request, verb, object, *id);
  return refuse_log(service, request, object, *id);
}

std::optional<Error> refuse_others(Service& service, const Request& request, Verb verb) {
  if (auto refusal = refuse_job(service, request, verb)) return refusal;
  const auto id = job_id_of(request);
  if (!id || request.principal.job == *id) return std::nullopt;
  const auto job = job_object(service, *id);
  note_denied(service, request, verb, {job ? job->queue : std::string(), {}}, *id);
  return Error{ErrorCode::kDenied,
               "the identity of a job is given to that job alone: ask from within it, with its BERTH_JOB_TOKEN"};
}

// Rows of a queue that the subject may not see are refused as those of a queue that does not exist.
std::optional<Error> refuse_rows(Service& service, const Request& request, Verb verb) {
  const auto queue = request.query.find("queue");
  if (queue != request.query.end() && !queue->second.empty() && queue->second != "/" &&
      !policy::authorize(request.principal, Verb::kSeeQueue, {queue->second}).allowed)
    return not_found("no such queue '" + queue->second.substr(0, 200) + "'");
  if (policy::reach_anywhere(request.principal, verb) != policy::Reach::kNone) return std::nullopt;
  const std::string_view asked = queue == request.query.end() ? std::string_view() : queue->second;
  const Object object{asked, request.principal.user};
  return denial(service, request, verb, {object.queue}, policy::authorize(request.principal, verb, object));
}

std::optional<Error> refuse(Service& service, const Request& request, const Rule& rule) {
  if (request.principal.saves_only && rule.verb != Verb::kReportCheckpoint) {
    note_denied(service, request, rule.verb, {}, request.principal.job);
    return Error{ErrorCode::kDenied, "this token reports the saves of job " +
                                         std::to_string(request.principal.job.value()) + ", and may nothing else"};
  }
  switch (rule.on) {
    case On::kBody:
    case On::kAnyone:
      return std::nullopt;
    case On::kCluster:
      return refuse_object(service, request, rule.verb, {});
    case On::kQueue: {
      const std::string& path = request.path_params.at("path");
      if (refuse_object(service, request, rule.verb, {path}))
        return not_found("no such queue '" + path.substr(0, 200) + "'");
      return std::nullopt;
    }
    case On::kParent: {
      const std::string path = request.path_params.at("path");
      if (refuse_object(service, request, Verb::kSeeQueue, {path}))
        return not_found("no such queue '" + path.substr(0, 200) + "'");
      const std::string above = parent_of(path);
      return refuse_object(service, request, rule.verb, {above});
    }
    case On::kJob:
      return refuse_job(service, request, rule.verb);
    case On::kItself:
      return refuse_others(service, request, rule.verb);
    case On::kRows:
      return refuse_rows(service, request, rule.verb);
  }
  return Error{ErrorCode::kDenied, "denied"};
}

}  // namespace

std::optional<JobObject> job_object(Service& service, JobId id) {
  std::optional<JobObject> found;
  service.read([&](const View& view) {
    if (const state::JobState* job = view.state.job(id))
      found = {view.state.queue(job->queue).path, job->spec.user,
               view.state.blocked().contains("user:" + job->spec.user)};
  });
  if (found) return found;
  if (const auto past = service.past_job(id)) {
    service.read([&](const View& view) {
      found = {std::string(view.state.present_path(past->job.spec.queue)), past->job.spec.user, false};
    });
  }
  return found;
}

policy::Subject admin_subject() { return {.name = "admin", .user = "admin", .roles = {{"admin", Role::kAdmin, ""}}}; }

AccessDenied denial_of(const Request& request, Verb verb, const Object& object, JobId job) {
  AccessDenied denied;
  denied.subject = request.subject;
  denied.proof = request.principal.proof;
  denied.address = without_port(request.peer);
  denied.verb = name_of(verb);
  denied.queue = policy::audit_text(object.queue);
  denied.job = job;
  return denied;
}

void note_denied(Service& service, const Request& request, Verb verb, const Object& object, JobId job) {
  service.note_denial(denial_of(request, verb, object, job));
}

void note_if_denied(Service& service, const AccessDenied& denied, const Error& error) {
  if (error.code == ErrorCode::kDenied) service.note_denial(denied);
}

Error denial(Service& service, const Request& request, Verb verb, const Object& object, const Decision& decision,
             JobId job) {
  note_denied(service, request, verb, object, job);
  std::string text =
      request.principal.name + " may not " + std::string(name_of(verb)) +
      (object.queue.empty() ? " in this cluster" : " in queue " + std::string(object.queue).substr(0, 200));
  if (decision.needs) text += "; that takes the role " + std::string(name_of(*decision.needs)) + " there";
  return {ErrorCode::kDenied, text};
}

bool may_see_job(Service& service, const Request& request, JobId id) {
  if (policy::authorize(request.principal, Verb::kSeeJob, {}).allowed) return true;
  const auto job = job_object(service, id);
  return job && policy::authorize(request.principal, Verb::kSeeJob, {job->queue, job->owner, id}).allowed;
}

void hide_others(Service& service, const Request& request, boost::json::value& view) {
  if (auto* array = view.if_array()) {
    for (boost::json::value& one : *array) hide_others(service, request, one);
    return;
  }
  auto* object = view.if_object();
  if (object == nullptr) return;
  const auto hidden = [&](const boost::json::value& id) {
    return id.is_number() && !may_see_job(service, request, JobId(id.to_number<std::uint64_t>()));
  };
  if (auto* preemptor = object->if_contains("preemptor"); preemptor != nullptr && hidden(*preemptor))
    object->erase("preemptor");
  if (auto* victims = object->if_contains("victims"); victims != nullptr && victims->is_array()) {
    boost::json::array kept;
    for (const boost::json::value& one : victims->as_array()) {
      if (!hidden(one)) kept.push_back(one);
    }
    *victims = std::move(kept);
  }
  for (auto& member : *object) {
    if (member.value().is_structured()) hide_others(service, request, member.value());
  }
}

http::Router guarded(const http::Router& open, Service& service) {
  http::Router router;
  for (http::Route route : open.routes()) {
    const Rule& rule = rule_of(route.doc.operation_id.text);
    if (route.access == http::Access::kToken) {
      route.handler = [&service, &rule, handler = std::move(route.handler)](const Request& request,
                                                                            const Responder& to) {
        if (const auto refusal = refuse(service, request, rule)) {
          to.fail(*refusal);
          return;
        }
        handler(request, to);
      };
    }
    router.add(std::move(route));
  }
  return router;
}

}  // namespace berth::api
