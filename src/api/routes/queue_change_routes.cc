// Changes of single limits of a queue by command, beside the configuration file.

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "api/routes/access.h"
#include "api/routes/json_text.h"
#include "api/routes/queue_edit_view.h"
#include "api/routes/request_reading.h"
#include "api/routes/route_groups.h"
#include "control/queue_change.h"
#include "model/document/limit_setting.h"
#include "model/json_fields.h"

namespace berth::api {

namespace json = boost::json;

json::array limit_views(const std::vector<LimitChange>& limits) {
  json::array views;
  for (const LimitChange& limit : limits) {
    views.push_back(json::object{{"key", limit.key},
                                 {"value", document::limit_text(limit.key, limit.value)},
                                 {"before", document::limit_text(limit.key, limit.before)}});
  }
  return views;
}

json::object edit_view(const QueueEdit& edit) {
  json::object view{{"version", edit.version},
                    {"by", edit.user},
                    {"at", to_iso8601(edit.time)},
                    {"limits", limit_views(edit.limits)}};
  if (!edit.until.is_never()) view["until"] = to_iso8601(edit.until);
  return view;
}

json::array edit_views(const state::State& state, const std::string& queue) {
  json::array views;
  const auto edits = state.queue_edits().find(queue);
  if (edits == state.queue_edits().end()) return views;
  for (const QueueEdit& edit : edits->second) views.push_back(edit_view(edit));
  return views;
}

json::array over_file_views(const ClusterConfig& file, const QueueEdits& edits) {
  json::array views;
  for (const LimitsOfQueue& over : limits_over(file, edits)) {
    for (const LimitChange& limit : over.limits) {
      json::object view{{"queue", over.queue},
                        {"key", limit.key},
                        {"value", document::limit_text(limit.key, limit.value)},
                        {"file", document::limit_text(limit.key, limit.before)}};
      for (const QueueEdit& edit : edits.find(over.queue)->second) {
        const bool sets = std::any_of(edit.limits.begin(), edit.limits.end(),
                                      [&](const LimitChange& one) { return one.key == limit.key; });
        if (!sets) continue;
        view["by"] = edit.user;
        view["at"] = to_iso8601(edit.time);
        view.erase("until");
        if (!edit.until.is_never()) view["until"] = to_iso8601(edit.until);
      }
      views.push_back(std::move(view));
    }
  }
  return views;
}

namespace {

using http::Access;
using http::Method;
using http::Request;
using http::Responder;

// The body of a change, or of its preview. `undo` is the preview of undoing the last change.
struct QueueChangeRequest {
  std::vector<std::string> set;
  std::optional<Timestamp> until;
  bool undo = false;
  static constexpr auto fields() {
    return field_list(field("set", &QueueChangeRequest::set), field("until", &QueueChangeRequest::until),
                      field("undo", &QueueChangeRequest::undo));
  }
};

// Returns the revision that If-Match names; empty: any will do.
Result<std::string> revision_to_match(const Request& request) {
  const std::string_view tag = request.header("if-match");
  if (tag.empty() || tag == "*") return std::string();
  if (tag.size() < 3 || tag.front() != '"' || tag.back() != '"')
    return invalid("If-Match: give the revision of the queue in quotes, as GET of the queue shows it");
  return std::string(tag.substr(1, tag.size() - 2));
}

// An operator and an admin of the cluster set terms beyond those of the queue above, and the queues directly below the
// root. An org-admin at the root does not.
bool operates(const Request& request) {
  const auto& roles = request.principal.roles;
  return std::any_of(roles.begin(), roles.end(), [](const RoleBinding& one) {
    return one.queue.empty() && (one.role == Role::kOperator || one.role == Role::kAdmin);
  });
}

std::optional<Error> refuse_below_root(Service& service, const Request& request) {
  const std::string& path = request.path_params.at("path");
  if (path.find('/') != std::string::npos || operates(request)) return std::nullopt;
  note_denied(service, request, policy::Verb::kChangeQueue, {path});
  return Error{ErrorCode::kDenied, request.principal.name + " may not change queue " + path.substr(0, 200) +
                                       ": the queues directly below the root are the operator's"};
}

Result<QueueChangeRequest> asked_of(const Request& request) {
  const auto body = object_of(request);
  if (!body) return body.error();
  return from_json<QueueChangeRequest>(*body);
}

Result<SetQueue> change_of(Service& service, const Request& request) {
  const auto asked = asked_of(request);
  if (!asked) return asked.error();
  if (asked->undo) return invalid("undo: only a preview takes it; POST to changes/undo to undo");
  if (const auto refusal = refuse_below_root(service, request)) return *refusal;
  auto revision = revision_to_match(request);
  if (!revision) return revision.error();
  SetQueue command{.queue = request.path_params.at("path"),
                   .settings = {},
                   .until = asked->until.value_or(Timestamp::never()),
                   .user = request.subject,
                   .operates = operates(request),
                   .if_revision = std::move(*revision)};
  for (const std::string& text : asked->set) {
    auto setting = document::read_limit_setting(text);
    if (!setting) return setting.error();
    command.settings.push_back(std::move(*setting));
  }
  return command;
}

Result<UndoQueueChange> undo_of(Service& service, const Request& request) {
  if (const auto refusal = refuse_below_root(service, request)) return *refusal;
  auto revision = revision_to_match(request);
  if (!revision) return revision.error();
  return UndoQueueChange{request.path_params.at("path"), request.subject, std::move(*revision)};
}

http::Response stale_queue(const std::string& queue, const control::Reply& reply) {
  const std::string by = reply.stale_by.empty() ? "the configuration file was applied" : reply.stale_by;
  http::Response response = http::problem(412, "precondition-failed",
                                          "queue '" + queue + "' was changed in between: its revision is " +
                                              reply.revision + " (" + by + "); look at it again before you change it");
  response.headers.push_back({"ETag", "\"" + reply.revision + "\""});
  return response;
}

json::object change_view(const std::string& queue, const control::Reply& reply) {
  return {{"queue", queue},
          {"version", reply.version},
          {"unchanged", reply.unchanged},
          {"revision", reply.revision},
          {"limits", limit_views(reply.limits)}};
}

http::Response with_revision(const json::object& body, const control::Reply& reply) {
  http::Response response = json_answer(body);
  response.headers.push_back({"ETag", "\"" + reply.revision + "\""});
  return response;
}

void submit_change(Service& service, const Request& request, Command command, const std::string& queue,
                   const Responder& responder) {
  const AccessDenied denied = denial_of(request, policy::Verb::kChangeQueue, {queue});
  service.submit(origin_of(request), std::move(command),
                 [&service, responder, queue, denied](const Result<control::Reply>& reply) {
                   if (!reply) {
                     note_if_denied(service, denied, reply.error());
                     responder.fail(reply.error());
                   } else if (reply->stale) {
                     responder.send(stale_queue(queue, *reply));
                   } else {
                     responder.send(with_revision(change_view(queue, *reply), *reply));
                   }
                 });
}

void set_limits(Service& service, const Request& request, const Responder& responder) {
  auto command = change_of(service, request);
  if (!command) {
    responder.fail(command.error());
    return;
  }
  const std::string queue = command->queue;
  submit_change(service, request, std::move(*command), queue, responder);
}

void undo_change(Service& service, const Request& request, const Responder& responder) {
  auto command = undo_of(service, request);
  if (!command) {
    responder.fail(command.error());
    return;
  }
  const std::string queue = command->queue;
  submit_change(service, request, std::move(*command), queue, responder);
}

json::object jobs_view(const QueuePreview::Jobs& jobs) {
  json::array ids;
  for (const JobId id : jobs.seen) ids.emplace_back(id.value());
  return {{"jobs", std::move(ids)}, {"not_shown", jobs.not_shown}};
}

Result<Command> previewed(Service& service, const Request& request) {
  const auto asked = asked_of(request);
  if (!asked) return asked.error();
  if (asked->undo) {
    if (!asked->set.empty() || asked->until) return invalid("undo goes with neither set nor until");
    auto undo = undo_of(service, request);
    if (!undo) return undo.error();
    return Command(std::move(*undo));
  }
  auto change = change_of(service, request);
  if (!change) return change.error();
  return Command(std::move(*change));
}

void preview_change(Service& service, const Request& request, const Responder& responder) {
  const auto command = previewed(service, request);
  if (!command) {
    responder.fail(command.error());
    return;
  }
  const std::string& queue = request.path_params.at("path");
  const auto preview = service.preview(*command, request.principal);
  if (!preview) {
    note_if_denied(service, denial_of(request, policy::Verb::kChangeQueue, {queue}), preview.error());
    responder.fail(preview.error());
    return;
  }
  if (preview->reply.stale) {
    responder.send(stale_queue(queue, preview->reply));
    return;
  }
  // A change that follows may be held to the revision of now.
  std::string revision;
  service.read([&](const View& view) {
    if (view.state.queue_at(queue) != nullptr) revision = control::revision_in(view.state, queue);
  });
  json::object body{{"queue", queue},
                    {"unchanged", preview->reply.unchanged},
                    {"revision", revision},
                    {"limits", limit_views(preview->reply.limits)},
                    {"become_borrowed", jobs_view(preview->become_borrowed)},
                    {"become_guaranteed", jobs_view(preview->become_guaranteed)},
                    {"above_max", preview->above_max},
                    {"start", jobs_view(preview->start)},
                    {"wait", jobs_view(preview->wait)},
                    {"stop", jobs_view(preview->stop)}};
  responder.send(json_answer(body));
}

http::ParameterDoc if_match() {
  return http::header_parameter(
      "If-Match",
      "The revision of the queue that this change was made for, in quotes. If it has another one, nothing changes.",
      "^\"[0-9a-f]{16}\"$");
}

std::vector<http::ResponseDoc> change_responses(const char* done, const char* schema) {
  return {
      {.status = 200, .description = done, .schema = schema},
      {.status = 400, .description = "The request breaks a rule."},
      {.status = 404, .description = "There is no such queue."},
      {.status = 409, .description = "It is not within the limits of the queue above, or there is nothing to undo."},
      {.status = 412, .description = "The queue has another revision than that of If-Match."}};
}

}  // namespace

void add_queue_change_routes(http::Router& router, Service& service) {
  router.add(
      {.method = Method::kPost,
       .pattern = "/v1/queues/{path}/changes",
       .access = Access::kToken,
       .doc = {.operation_id = "setQueue",
               .summary = "Sets limits of a queue, beside the configuration file.",
               .responses = change_responses("It is in force.", "QueueChange"),
               .description = "Takes a role at the queue above. The guarantees of queues keep within that of the queue "
                              "above, and a ceiling within those above it; now and when a lease ends.",
               .tags = {"queues"},
               .parameters = {queue_parameter(), if_match()},
               .request_schema = "QueueChangeRequest"},
       .handler = [&service](const Request& request, const Responder& to) { set_limits(service, request, to); }});
  router.add(
      {.method = Method::kPost,
       .pattern = "/v1/queues/{path}/changes/preview",
       .access = Access::kToken,
       .threads = http::Threads::kLongReads,
       .doc = {.operation_id = "previewQueueChange",
               .summary = "What a change of a queue would do, without doing it.",
               .responses = change_responses("What it would do.", "QueuePreview"),
               .tags = {"queues"},
               .parameters = {queue_parameter(), if_match()},
               .request_schema = "QueuePreviewRequest"},
       .handler = [&service](const Request& request, const Responder& to) { preview_change(service, request, to); }});
  router.add(
      {.method = Method::kPost,
       .pattern = "/v1/queues/{path}/changes/undo",
       .access = Access::kToken,
       .doc = {.operation_id = "undoQueueChange",
               .summary = "Undoes the last change of a queue by command.",
               .responses = change_responses("What was in force before is in force again.", "QueueChange"),
               .tags = {"queues"},
               .parameters = {queue_parameter(), if_match()}},
       .handler = [&service](const Request& request, const Responder& to) { undo_change(service, request, to); }});
}

}  // namespace berth::api
