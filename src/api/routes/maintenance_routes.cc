// Maintenance windows: those that are planned or last, a new one, and one that is not to be.

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "api/routes/json_text.h"
#include "api/routes/request_reading.h"
#include "api/routes/route_groups.h"
#include "api/routes/views.h"
#include "model/json_fields.h"

namespace berth::api {
namespace {

namespace json = boost::json;
using http::Access;
using http::Method;
using http::Request;
using http::Responder;

// The body of a new window.
struct WindowRequest {
  std::string name;
  std::vector<std::string> nodes;
  Labels labels;
  std::string pool;
  Timestamp from;
  std::int64_t for_s = 0;
  std::string reason;
  static constexpr auto fields() {
    return field_list(field("name", &WindowRequest::name), field("nodes", &WindowRequest::nodes),
                      field("labels", &WindowRequest::labels), field("pool", &WindowRequest::pool),
                      field("from", &WindowRequest::from), field("for_s", &WindowRequest::for_s),
                      field("reason", &WindowRequest::reason));
  }
};

void list_windows(Service& service, const Responder& responder) {
  json::array items;
  Seq seq = 0;
  service.read([&](const View& view) {
    for (const auto& [name, window] : view.state.maintenance()) items.push_back(window_view(view.state, window));
    seq = view.state.last_seq();
  });
  responder.send(json_answer(json::object{{"items", std::move(items)}, {"seq", seq}}));
}

void submit(Service& service, const Request& request, Command command, int status, const Responder& responder) {
  service.submit(origin_of(request), std::move(command), [responder, status](const Result<control::Reply>& reply) {
    if (!reply) {
      responder.fail(reply.error());
      return;
    }
    const bool unchanged = reply.value().unchanged;
    http::Response answer = json_answer(json::object{{"name", reply.value().name}, {"unchanged", unchanged}});
    if (!unchanged) answer.status = status;
    responder.send(std::move(answer));
  });
}

void plan_window(Service& service, const Request& request, const Responder& responder) {
  const auto body = object_of(request);
  if (!body) {
    responder.fail(body.error());
    return;
  }
  auto asked = from_json<WindowRequest>(*body);
  if (!asked) {
    responder.fail(asked.error());
    return;
  }
  PlanMaintenance command;
  command.name = std::move(asked->name);
  command.nodes = std::move(asked->nodes);
  command.labels = std::move(asked->labels);
  command.pool = std::move(asked->pool);
  command.from = asked->from;
  command.for_s = asked->for_s;
  command.reason = std::move(asked->reason);
  command.user = request.subject;
  submit(service, request, std::move(command), 201, responder);
}

}  // namespace

void add_maintenance_routes(http::Router& router, Service& service) {
  router.add({.method = Method::kGet,
              .pattern = "/v1/maintenance",
              .access = Access::kToken,
              .threads = http::Threads::kReads,
              .doc = {.operation_id = "listMaintenance",
                      .summary = "Maintenance windows that are not over, by name.",
                      .responses = {{.status = 200, .description = "The windows.", .schema = "MaintenanceList"}},
                      .tags = {"nodes"}},
              .handler = [&service](const Request&, const Responder& to) { list_windows(service, to); }});
  router.add(
      {.method = Method::kPost,
       .pattern = "/v1/maintenance",
       .access = Access::kToken,
       .doc = {.operation_id = "planMaintenance",
               .summary = "Plans a maintenance window: for so long nothing runs on these nodes.",
               .responses = {{.status = 201, .description = "It is planned.", .schema = "MaintenanceChanged"},
                             {.status = 200,
                              .description = "The same window was planned before.",
                              .schema = "MaintenanceChanged"},
                             {.status = 400, .description = "The window breaks a rule, or is over already."},
                             {.status = 404, .description = "There is no such node."},
                             {.status = 409, .description = "Another window has this name."}},
               .description = "Jobs that would still run when it begins do not start there before it, unless "
                              "they can be moved without a loss; those that run there are asked to leave in "
                              "time. Nodes are named, or all that are there now are selected by pool and labels.",
               .tags = {"nodes"},
               .request_schema = "MaintenanceRequest",
               .request_types = {"application/json"}},
       .handler = [&service](const Request& request, const Responder& to) { plan_window(service, request, to); }});
  router.add({.method = Method::kDelete,
              .pattern = "/v1/maintenance/{name}",
              .access = Access::kToken,
              .doc = {.operation_id = "cancelMaintenance",
                      .summary = "Cancels a window, or ends one that lasts.",
                      .responses = {{.status = 200, .description = "Done.", .schema = "MaintenanceChanged"},
                                    {.status = 404, .description = "There is no such window."}},
                      .tags = {"nodes"},
                      .parameters = {http::path_parameter("name", "The window's name.")}},
              .handler = [&service](const Request& request, const Responder& to) {
                submit(service, request, CancelMaintenance{request.path_params.at("name"), request.subject}, 200, to);
              }});
}

}  // namespace berth::api
