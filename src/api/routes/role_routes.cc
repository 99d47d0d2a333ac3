// Roles: those of the configuration and those that were granted by command; and subjects whose access is ended.

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "api/routes/access.h"
#include "api/routes/json_text.h"
#include "api/routes/request_reading.h"
#include "api/routes/route_groups.h"
#include "model/json_fields.h"

namespace berth::api {
namespace {

namespace json = boost::json;
using http::Access;
using http::Method;
using http::Request;
using http::Responder;
using policy::Verb;

// The body that names a subject.
struct SubjectRequest {
  std::string subject;
  static constexpr auto fields() { return field_list(field("subject", &SubjectRequest::subject)); }
};

json::object granted_view(const RoleBinding& binding, const state::BindingOrigin* origin, bool blocked) {
  json::object view{{"subject", binding.subject},
                    {"role", name_of(binding.role)},
                    {"queue", binding.queue},
                    {"from", origin == nullptr ? "file" : "command"}};
  if (origin != nullptr) {
    view["by"] = origin->user;
    view["at"] = to_iso8601(origin->time);
  }
  if (blocked) view["blocked"] = true;
  return view;
}

// A subject sees its own bindings, and those at queues whose roles it may manage; with see-config, all of them.
bool may_see(const Request& request, const RoleBinding& binding) {
  if (binding.subject == request.principal.name) return true;
  return policy::authorize(request.principal, Verb::kSeeConfig, {}).allowed ||
         policy::authorize(request.principal, Verb::kManageRoles, {binding.queue}).allowed;
}

void list_roles(Service& service, const Request& request, const Responder& responder) {
  json::array items;
  json::array blocked;
  Seq seq = 0;
  service.read([&](const View& view) {
    const state::State& state = view.state;
    const auto add = [&](const RoleBinding& binding, const state::BindingOrigin* origin) {
      if (may_see(request, binding))
        items.push_back(granted_view(binding, origin, state.blocked().contains(binding.subject)));
    };
    for (const RoleBinding& binding : state.config().roles) add(binding, nullptr);
    for (const auto& [binding, origin] : state.granted()) add(binding, &origin);
    if (policy::authorize(request.principal, Verb::kSeeConfig, {}).allowed) {
      for (const auto& [subject, origin] : state.blocked())
        blocked.push_back(json::object{{"subject", subject}, {"by", origin.user}, {"at", to_iso8601(origin.time)}});
    }
    seq = state.last_seq();
  });
  responder.send(json_answer(json::object{{"items", std::move(items)}, {"blocked", std::move(blocked)}, {"seq", seq}}));
}

// What is said to a subject that may not grant or revoke the role.
Error may_not_bind(Service& service, const Request& request, const RoleBinding& binding) {
  const policy::Decision decision = policy::authorize(request.principal, Verb::kManageRoles, {binding.queue});
  if (!decision.allowed) return denial(service, request, Verb::kManageRoles, {binding.queue}, decision);
  note_denied(service, request, Verb::kManageRoles, {binding.queue});
  return {ErrorCode::kDenied, request.principal.name + " is " + std::string(name_of(decision.by->role)) + " at " +
                                  (decision.by->queue.empty() ? "/" : decision.by->queue) +
                                  ", which may not grant or revoke the role " + std::string(name_of(binding.role))};
}

void bind(Service& service, const Request& request, bool bound, const Responder& responder) {
  const auto body = object_of(request);
  if (!body) {
    responder.fail(body.error());
    return;
  }
  auto binding = from_json<RoleBinding>(*body);
  if (!binding) {
    responder.fail(binding.error());
    return;
  }
  if (!policy::may_bind(request.principal, *binding)) {
    responder.fail(may_not_bind(service, request, *binding));
    return;
  }
  json::object answer{{"subject", binding->subject}, {"role", name_of(binding->role)}, {"queue", binding->queue}};
  service.submit(origin_of(request), BindRole{std::move(*binding), bound, request.subject},
                 [responder, answer](const Result<control::Reply>& reply) mutable {
                   if (!reply) {
                     responder.fail(reply.error());
                     return;
                   }
                   answer["unchanged"] = reply->unchanged;
                   responder.send(json_answer(answer));
                 });
}

void block(Service& service, const Request& request, bool blocked, const Responder& responder) {
  const auto body = object_of(request);
  if (!body) {
    responder.fail(body.error());
    return;
  }
  auto asked = from_json<SubjectRequest>(*body);
  if (!asked) {
    responder.fail(asked.error());
    return;
  }
  const std::string subject = asked->subject;
  service.submit(origin_of(request), BlockSubject{subject, blocked, request.subject},
                 [responder, subject, blocked](const Result<control::Reply>& reply) {
                   if (!reply) {
                     responder.fail(reply.error());
                     return;
                   }
                   responder.send(json_answer(
                       json::object{{"subject", subject}, {"blocked", blocked}, {"unchanged", reply->unchanged}}));
                 });
}

}  // namespace

void add_role_routes(http::Router& router, Service& service) {
  router.add(
      {.method = Method::kGet,
       .pattern = "/v1/roles",
       .access = Access::kToken,
       .threads = http::Threads::kReads,
       .doc = {.operation_id = "listRoles",
               .summary = "Which subject has which role at which queue, and whether by the file or by command.",
               .responses = {{.status = 200, .description = "The roles.", .schema = "RoleList"}},
               .description = "Your own, and those at queues whose roles you may manage.",
               .tags = {"access"}},
       .handler = [&service](const Request& request, const Responder& to) { list_roles(service, request, to); }});
  router.add(
      {.method = Method::kPost,
       .pattern = "/v1/roles",
       .access = Access::kToken,
       .doc = {.operation_id = "grantRole",
               .summary = "Grants a role at a queue and at all queues below it.",
               .responses = {{.status = 200, .description = "It is granted.", .schema = "RoleChanged"},
                             {.status = 400, .description = "The request breaks a rule."},
                             {.status = 403, .description = "Your own role does not reach so far."},
                             {.status = 404, .description = "There is no such queue."}},
               .tags = {"access"},
               .request_schema = "RoleRequest"},
       .handler = [&service](const Request& request, const Responder& to) { bind(service, request, true, to); }});
  router.add(
      {.method = Method::kPost,
       .pattern = "/v1/roles/revoke",
       .access = Access::kToken,
       .doc = {.operation_id = "revokeRole",
               .summary = "Revokes a role that was granted by command.",
               .responses = {{.status = 200, .description = "It is revoked.", .schema = "RoleChanged"},
                             {.status = 403, .description = "Your own role does not reach so far."},
                             {.status = 404, .description = "There is no such role."},
                             {.status = 409,
                              .description = "It is the configuration's, or nobody could administer after it."}},
               .tags = {"access"},
               .request_schema = "RoleRequest"},
       .handler = [&service](const Request& request, const Responder& to) { bind(service, request, false, to); }});
  router.add(
      {.method = Method::kPost,
       .pattern = "/v1/subjects/block",
       .access = Access::kToken,
       .doc = {.operation_id = "blockSubject",
               .summary = "Ends all access of a subject at once, whatever its roles and tokens are.",
               .responses = {{.status = 200, .description = "It is ended.", .schema = "SubjectChanged"},
                             {.status = 400, .description = "That is no subject."},
                             {.status = 409, .description = "Nobody could administer after it."}},
               .description = "Its open streams end, and its tokens are refused. Its jobs go on.",
               .tags = {"access"},
               .request_schema = "SubjectRequest"},
       .handler = [&service](const Request& request, const Responder& to) { block(service, request, true, to); }});
  router.add(
      {.method = Method::kPost,
       .pattern = "/v1/subjects/unblock",
       .access = Access::kToken,
       .doc = {.operation_id = "unblockSubject",
               .summary = "Lets a subject in again, with the roles and tokens that it has.",
               .responses = {{.status = 200, .description = "It may come in.", .schema = "SubjectChanged"},
                             {.status = 400, .description = "That is no subject."}},
               .tags = {"access"},
               .request_schema = "SubjectRequest"},
       .handler = [&service](const Request& request, const Responder& to) { block(service, request, false, to); }});
}

}  // namespace berth::api
