// What a monitoring system scrapes.

#include "api/routes/route_groups.h"

namespace berth::api {
namespace {

using http::Access;
using http::Method;
using http::Request;
using http::Responder;

constexpr const char* kExposition = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace

void add_metrics_routes(http::Router& router, Service& service) {
  router.add({.method = Method::kGet,
              .pattern = "/metrics",
              .access = Access::kToken,
              .threads = http::Threads::kLongReads,
              .doc = {.operation_id = "getMetrics",
                      .summary = "Counters, gauges and histograms for Prometheus.",
                      .responses = {{.status = 200,
                                     .description = "Prometheus text exposition format 0.0.4.",
                                     .schema = {},
                                     .content_type = kExposition}},
                      .description = "Counters begin at zero when the server starts.",
                      .tags = {"cluster"}},
              .handler = [&service](const Request&, const Responder& to) {
                to.send({.status = 200, .content_type = kExposition, .headers = {}, .body = service.metrics()});
              }});
}

}  // namespace berth::api
