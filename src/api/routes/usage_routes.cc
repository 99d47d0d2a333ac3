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
  const Timestamp now = now_of(service);
  const Timestamp from = time_of(request, "from", Timestamp{0});
  const Timestamp to = time_of(request, "to", now);
  if (to < from) {
    responder.fail(invalid(from > now ? "from " + to_iso8601(from) + " is still to come; it is " + to_iso8601(now)
                                      : "to " + to_iso8601(to) + " lies before from " + to_iso8601(from)));
    return;
  }
  const auto report = service.usage(from, to);
  if (!report) {
    responder.fail(report.error());
    return;
  }
  UsageReport shown = report.value();
  if (!policy::authorize(request.principal, policy::Verb::kSeeUsage, {}).allowed) {
    std::erase_if(shown.rows, [&](const UsageRow& row) {
      return !policy::authorize(request.principal, policy::Verb::kSeeUsage, {row.queue, row.user}).allowed;
    });
    // Of the rest of the fleet it learns nothing: what is shown is all that there is.
    shown.idle_gpu_milli_ms = shown.down_gpu_milli_ms = shown.capacity_gpu_milli_ms = 0;
    for (const UsageRow& row : shown.rows) shown.capacity_gpu_milli_ms += row.gpu_milli_ms;
  }
  responder.send(json_answer(usage_view(shown, service.facts().simulated_gpus)));
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
                                                    "Start of the time counted; the beginning of the log if absent.",
                                                    http::ParameterType::kTime),
                              http::query_parameter("to", "End of the time counted, not before from; now if absent.",
                                                    http::ParameterType::kTime)}},
       .handler = [&service](const Request& request, const Responder& to) { get_usage(service, request, to); }});
}

}  // namespace berth::api
