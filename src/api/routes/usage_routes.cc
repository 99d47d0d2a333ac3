// GPU time used, by queue, user and model.

#include "api/routes/json_text.h"
#include "api/routes/request_reading.h"
#include "api/routes/route_groups.h"
#include "api/routes/views.h"

namespace berth::api {
namespace {

using http::Access;
using http::Method;
using http::Request;
using http::Responder;

Timestamp now_of(Service& service) {
  Timestamp now;
  service.read([&](const View& view) { now = view.now; });
  return now;
}

void get_usage(Service& service, const Request& request, const Responder& responder) {
  const auto from = time_of(request, "from", Timestamp{0});
  const Timestamp now = now_of(service);
  const auto to = from ? time_of(request, "to", now) : from;
  if (!to) {
    responder.fail(to.error());
    return;
  }
  if (to.value() < from.value()) {
    const bool ahead = from.value() > now;
    responder.fail(invalid(ahead ? "from " + to_iso8601(from.value()) + " is still to come; it is " + to_iso8601(now)
                                 : "to " + to_iso8601(to.value()) + " lies before from " + to_iso8601(from.value())));
    return;
  }
  const auto report = service.usage(from.value(), to.value());
  if (!report) {
    responder.fail(report.error());
    return;
  }
  responder.send(json_answer(usage_view(report.value(), service.facts().simulated_gpus)));
}

}  // namespace

void add_usage_routes(http::Router& router, Service& service) {
  router.add(
      {.method = Method::kGet,
       .pattern = "/v1/usage",
       .access = Access::kToken,
       .threads = http::Threads::kLongReads,
       .doc = {.operation_id = "getUsage",
               .summary = "GPU time by queue, user and GPU model, within and borrowed apart.",
               .responses = {{.status = 200, .description = "The usage.", .schema = "Usage"}},
               .description = "Every millisecond of every GPU is in exactly one place: the items, idle and down add up "
                              "to capacity. The fields named gpu_milli_ms are exact (thousandths of a GPU times "
                              "milliseconds); gpu_seconds is the same, rounded to milliseconds.",
               .tags = {"usage"},
               .parameters = {http::query_parameter("from",
                                                    "Start of the time counted, ISO 8601; the beginning of the "
                                                    "log if absent."),
                              http::query_parameter("to", "End of the time counted, ISO 8601; now if absent.")}},
       .handler = [&service](const Request& request, const Responder& to) { get_usage(service, request, to); }});
}

}  // namespace berth::api
