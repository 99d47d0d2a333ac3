// Health and the cluster as a whole.

#include "api/routes/json_text.h"
#include "api/routes/route_groups.h"
#include "api/routes/views.h"

namespace berth::api {
namespace {

using http::Access;
using http::Method;
using http::Request;
using http::Responder;

boost::json::object health(Service& service) {
  const ServerFacts facts = service.facts();
  return {{"status", facts.log_end_known ? "ok" : "log-end-unknown"},
          {"version", facts.version},
          {"log_check", facts.log_check}};
}

void get_cluster(Service& service, const Responder& responder) {
  const ServerFacts facts = service.facts();
  boost::json::object body;
  service.read([&](const View& view) { body = cluster_view(view, facts); });
  responder.send(json_answer(body));
}

}  // namespace

void add_cluster_routes(http::Router& router, Service& service) {
  router.add({.method = Method::kGet,
              .pattern = "/healthz",
              .access = Access::kPublic,
              .doc = {.operation_id = "getHealth",
                      .summary = "Whether the server answers at all.",
                      .responses = {{.status = 200, .description = "It does.", .schema = "Health"}},
                      .tags = {"cluster"}},
              .handler = [&service](const Request&, const Responder& to) { to.send(json_answer(health(service))); }});
  router.add({.method = Method::kGet,
              .pattern = "/readyz",
              .access = Access::kPublic,
              .threads = http::Threads::kReads,
              .doc = {.operation_id = "getReadiness",
                      .summary = "Whether the server can read its state.",
                      .responses = {{.status = 200, .description = "It can.", .schema = "Health"}},
                      .tags = {"cluster"}},
              .handler = [&service](const Request&, const Responder& to) {
                service.read([](const View&) {});
                to.send(json_answer(health(service)));
              }});
  router.add({.method = Method::kGet,
              .pattern = "/v1/cluster",
              .access = Access::kToken,
              .threads = http::Threads::kReads,
              .doc = {.operation_id = "getCluster",
                      .summary = "The cluster in numbers: nodes, GPUs, jobs.",
                      .responses = {{.status = 200, .description = "The numbers of now.", .schema = "Cluster"}},
                      .tags = {"cluster"}},
              .handler = [&service](const Request&, const Responder& to) { get_cluster(service, to); }});
}

}  // namespace berth::api
