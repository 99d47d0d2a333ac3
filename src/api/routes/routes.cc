#include "api/routes/routes.h"

#include <memory>
#include <string>

#include "api/http/openapi.h"
#include "api/routes/access.h"
#include "api/routes/json_text.h"
#include "api/routes/past_reads.h"
#include "api/routes/route_groups.h"
#include "api/routes/schemas.h"

namespace berth::api {
namespace {

using http::Access;
using http::Method;
using http::Request;
using http::Responder;

// The document describes itself too, so it is written when the table is whole.
void add_document_route(http::Router& router, Service& service) {
  const auto document = std::make_shared<std::string>();
  router.add({.method = Method::kGet,
              .pattern = "/openapi.json",
              .access = Access::kPublic,
              .doc = {.operation_id = "getOpenApi",
                      .summary = "This document.",
                      .responses = {{.status = 200, .description = "OpenAPI 3.0.", .schema = "OpenApi"}},
                      .tags = {"cluster"}},
              .handler = [document](const Request&, const Responder& to) {
                http::Response response;
                response.body = *document;
                to.send(response);
              }});
  *document = json_text(http::openapi_document("berth", service.facts().version, router.routes(), all_schemas()));
}

}  // namespace

http::Router make_router(Service& service) {
  http::Router router;
  add_cluster_routes(router, service);
  add_metrics_routes(router, service);
  add_config_routes(router, service);
  add_job_routes(router, service);
  add_forecast_routes(router, service);
  add_job_log_routes(router, service);
  add_shell_routes(router, service);
  add_queue_routes(router, service);
  add_queue_change_routes(router, service);
  add_role_routes(router, service);
  add_node_routes(router, service);
  add_maintenance_routes(router, service);
  add_clock_routes(router, service);
  add_capacity_routes(router, service);
  add_advice_routes(router, service);
  add_diagnosis_routes(router, service);
  add_usage_routes(router, service);
  add_policy_routes(router, service);
  add_billing_routes(router, service);
  add_quantity_routes(router, service);
  add_event_routes(router, service);
  add_audit_routes(router, service);
  add_snapshot_routes(router, service);
  add_token_routes(router, service);
  add_access_routes(router, service);
  add_identity_routes(router, service);
  router = with_past_reads(router, service);
  add_document_route(router, service);
  return guarded(router, service);
}

}  // namespace berth::api
