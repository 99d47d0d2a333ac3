#include "api/routes/job_submission.h"

#include <algorithm>
#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "api/routes/access.h"
#include "api/routes/documents.h"
#include "api/routes/request_reading.h"
#include "control/validate.h"
#include "model/priority.h"
#include "model/queue_path.h"

namespace berth::api {
namespace {

using http::Request;

// Sets the queue of a job that names none: the only leaf queue in which its subject may submit.
Result<void> choose_queue(Service& service, const state::State& state, JobSpec& spec, const Request& request) {
  std::vector<std::string> allowed;
  for (const state::QueueState& queue : state.queues()) {
    if (queue.removed || !queue.is_leaf() || queue.id == state.root()) continue;
    const policy::Object object{queue.path, spec.user};
    if (policy::authorize(request.principal, policy::Verb::kSubmit, object).allowed) allowed.push_back(queue.path);
  }
  if (allowed.empty()) return denial(service, request, policy::Verb::kSubmit, {}, {.needs = Role::kMember});
  if (allowed.size() == 1) {
    spec.queue = allowed.front();
    return {};
  }
  std::sort(allowed.begin(), allowed.end());
  std::string text = "queue is missing; you may submit to ";
  for (std::size_t i = 0; i < std::min<std::size_t>(allowed.size(), 10); ++i) text += (i == 0 ? "" : ", ") + allowed[i];
  return invalid(text + (allowed.size() > 10 ? " and others" : ""));
}

// A job belongs to the user of its submitter. For others an admin of the whole cluster alone submits: a user is an
// account of every machine, and a name in every queue.
std::optional<Error> refuse_submission(Service& service, JobSpec& spec, const Request& request) {
  const policy::Subject& subject = request.principal;
  if (spec.user.empty()) spec.user = subject.user;
  if (policy::authorize(subject, policy::Verb::kSubmit, {{}, spec.user}).allowed) return std::nullopt;
  if (spec.queue.empty()) {
    Result<void> chosen;
    service.read([&](const View& view) { chosen = choose_queue(service, view.state, spec, request); });
    if (!chosen) return chosen.error();
  }
  const policy::Object object{spec.queue, spec.user};
  const policy::Decision decision = policy::authorize(subject, policy::Verb::kSubmit, object);
  if (decision.allowed && spec.user == subject.user) return std::nullopt;
  if (policy::authorize(subject, policy::Verb::kSubmit, {spec.queue, subject.user}).allowed) {
    note_denied(service, request, policy::Verb::kSubmit, object);
    return Error{ErrorCode::kDenied, "user: this token may submit as '" + subject.user + "' only"};
  }
  return denial(service, request, policy::Verb::kSubmit, object, decision);
}

std::optional<Role> submitting_role(const policy::Subject& subject, const JobSpec& spec) {
  std::optional<Role> highest;
  for (const RoleBinding& binding : subject.roles) {
    if (is_at_or_below(spec.queue, binding.queue) &&
        policy::reach_of(binding.role, policy::Verb::kSubmit) != policy::Reach::kNone)
      highest = std::max(highest, std::optional(binding.role));
  }
  return highest;
}

}  // namespace

Result<SubmitJob> submission_of(Service& service, const Request& request) {
  auto spec = decode_job(request);
  if (!spec) return spec.error();
  if (const auto refusal = refuse_submission(service, *spec, request)) return *refusal;
  for (const Dependency& one : spec->dependencies) {
    if (!may_see_job(service, request, one.job)) return control::no_such_dependency(one.job);
  }
  const std::optional<Role> role = submitting_role(request.principal, *spec);
  return SubmitJob{.spec = std::move(*spec), .key = {}, .role = role};
}

Result<std::int32_t> priority_in(const Request& request) {
  auto body = object_of(request);
  if (!body) return body.error();
  const auto priority = take_integer(*body, "priority", kLeastPriority, kMostPriority);
  if (!priority) return priority.error();
  if (auto ok = refuse_rest(*body); !ok) return ok.error();
  return static_cast<std::int32_t>(priority.value());
}

}  // namespace berth::api
