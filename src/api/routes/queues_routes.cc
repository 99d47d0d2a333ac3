// The queue tree with its limits and what runs and waits below each queue.

#include <boost/json/array.hpp>

#include "api/routes/json_text.h"
#include "api/routes/request_reading.h"
#include "api/routes/route_groups.h"
#include "api/routes/views.h"

namespace berth::api {
namespace {

namespace json = boost::json;
using http::Access;
using http::Method;
using http::Request;
using http::Responder;

void list_queues(Service& service, const Request& request, const Responder& responder) {
  json::object body;
  service.read([&](const View& view) {
    const auto visible = [&](std::string_view path) {
      return policy::authorize(request.principal, policy::Verb::kSeeQueue, {path}).allowed;
    };
    body = {{"items", queue_views(view.state, visible)}, {"seq", view.state.last_seq()}};
  });
  responder.send(json_answer(body));
}

void get_queue(Service& service, const Request& request, const Responder& responder) {
  const std::string& path = request.path_params.at("path");
  std::optional<json::object> body;
  service.read([&](const View& view) {
    if (const state::QueueState* queue = view.state.queue_at(path)) body = queue_view_by_itself(view, *queue);
  });
  if (body && body->contains("users")) {  // a member sees itself alone
    json::array& users = body->at("users").as_array();
    for (std::size_t i = users.size(); i-- > 0;) {
      const std::string user(users[i].at("user").as_string());
      const bool seen = policy::authorize(request.principal, policy::Verb::kSeeJob, {path, user}).allowed;
      if (!seen) users.erase(users.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  if (!body) {
    responder.fail(not_found("no such queue '" + path.substr(0, 200) + "'"));
    return;
  }
  responder.send(json_answer(*body));
}

void get_share(Service& service, const Request& request, const Responder& responder) {
  const std::string& path = request.path_params.at("path");
  const auto lines = service.explain_share(path);
  if (!lines) {
    responder.fail(lines.error());
    return;
  }
  responder.send(json_answer({{"path", path}, {"lines", json::array(lines->begin(), lines->end())}}));
}

}  // namespace

void add_queue_routes(http::Router& router, Service& service) {
  router.add(
      {.method = Method::kGet,
       .pattern = "/v1/queues",
       .access = Access::kToken,
       .threads = http::Threads::kReads,
       .doc = {.operation_id = "listQueues",
               .summary = "All queues, by path.",
               .responses = {{.status = 200, .description = "The queues.", .schema = "QueueList"}},
               .description = "The root of the tree is the cluster itself and is not listed.",
               .tags = {"queues"}},
       .handler = [&service](const Request& request, const Responder& to) { list_queues(service, request, to); }});
  router.add(
      {.method = Method::kGet,
       .pattern = "/v1/queues/{path}",
       .access = Access::kToken,
       .threads = http::Threads::kReads,
       .doc = {.operation_id = "getQueue",
               .summary =
                   "One queue, with its terms of eviction, and what each user has there where users are limited.",
               .responses = {{.status = 200, .description = "The queue.", .schema = "Queue"},
                             {.status = 404, .description = "There is no such queue."}},
               .tags = {"queues"},
               .parameters = {queue_parameter()}},
       .handler = [&service](const Request& request, const Responder& to) { get_queue(service, request, to); }});
  router.add(
      {.method = Method::kGet,
       .pattern = "/v1/queues/{path}/share",
       .access = Access::kToken,
       .threads = http::Threads::kReads,
       .doc = {.operation_id = "explainShare",
               .summary = "The arithmetic of a queue's share.",
               .responses = {{.status = 200, .description = "Step by step.", .schema = "Share"},
                             {.status = 404, .description = "There is no such queue."}},
               .description = "Usage over the cluster by resource, the dominant one over the weight; guarantees, "
                              "what is lent, kept back and borrowed; and where it stands among its siblings.",
               .tags = {"queues"},
               .parameters = {queue_parameter()}},
       .handler = [&service](const Request& request, const Responder& to) { get_share(service, request, to); }});
}

}  // namespace berth::api
