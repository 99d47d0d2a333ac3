// Quantities that berth does not measure: reported for a queue, and on its bill.

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "api/routes/access.h"
#include "api/routes/documents.h"
#include "api/routes/json_text.h"
#include "api/routes/request_reading.h"
#include "api/routes/route_groups.h"
#include "model/document/quantity_report.h"
#include "model/month.h"
#include "model/queue_path.h"

namespace berth::api {
namespace {

namespace json = boost::json;
using http::Access;
using http::Method;
using http::Request;
using http::Responder;

void report_quantities(Service& service, const Request& request, const Responder& responder) {
  auto reports = decode_quantities(request);
  if (!reports) {
    responder.fail(reports.error());
    return;
  }
  for (QuantityReported& report : *reports) report.user = request.subject;
  const std::size_t all = reports->size();
  service.submit(
      origin_of(request), ReportQuantities{std::move(*reports)}, [responder, all](const Result<control::Reply>& reply) {
        if (reply)
          responder.send(json_answer(json::object{{"reported", reply->reported}, {"repeated", all - reply->reported}}));
        else
          responder.fail(reply.error());
      });
}

void list_quantities(Service& service, const Request& request, const Responder& responder) {
  const std::string queue = text_of(request, "queue");
  const std::string kind = text_of(request, "kind");
  const std::string name = text_of(request, "month");
  const auto month = month_of(name);
  if (!name.empty() && !month) {
    responder.fail(invalid("month: '" + name.substr(0, 80) + "' is no month; give one such as 2026-11"));
    return;
  }
  json::array items;
  service.read([&](const View& view) {
    for (const auto& [id, report] : view.state.quantity_reports()) {
      if (!is_at_or_below(report.queue, queue) || (!kind.empty() && report.kind != kind)) continue;
      if (month && (report.from < month->begin || report.from >= month->end)) continue;
      if (!policy::authorize(request.principal, policy::Verb::kSeeUsage, {report.queue, {}}).allowed) continue;
      items.push_back(json::object{{"id", report.id},
                                   {"queue", report.queue},
                                   {"kind", report.kind},
                                   {"quantity", report.quantity},
                                   {"unit", report.unit},
                                   {"from", to_iso8601(report.from)},
                                   {"to", to_iso8601(report.to)},
                                   {"user", report.user}});
    }
  });
  responder.send(json_answer(json::object{{"items", std::move(items)}}));
}

}  // namespace

void add_quantity_routes(http::Router& router, Service& service) {
  router.add(
      {.method = Method::kPost,
       .pattern = "/v1/quantities",
       .access = Access::kToken,
       .doc = {.operation_id = "reportQuantities",
               .summary = "Reports quantities of storage, egress, energy or what else the prices name.",
               .responses = {{.status = 200, .description = "All of them count.", .schema = "QuantitiesReported"},
                             {.status = 400, .description = "A report is malformed or breaks a rule; none counts."},
                             {.status = 404, .description = "There is no such queue; none counts."},
                             {.status = 409,
                              .description = "The month is closed, the id was used for another report, or there are "
                                             "no prices; none counts."}},
               .description = "A report with the same id and contents counts once, whenever it is sent again. The unit "
                              "is that of the prices. See docs/billing.md.",
               .tags = {"billing"},
               .request_schema = "QuantityReports",
               .request_types = {"application/json", "application/yaml"}},
       .handler = [&service](const Request& request, const Responder& to) {
         report_quantities(service, request, to);
       }});
  router.add(
      {.method = Method::kGet,
       .pattern = "/v1/quantities",
       .access = Access::kToken,
       .threads = http::Threads::kReads,
       .doc = {.operation_id = "listQuantities",
               .summary = "Reported quantities of months that are not closed.",
               .responses = {{.status = 200, .description = "The reports, by id.", .schema = "QuantityList"},
                             {.status = 400, .description = "The month is none."}},
               .description = "Those of a closed month are lines of its invoices.",
               .tags = {"billing"},
               .parameters = {http::query_parameter("queue", "For this queue and those below it; all if absent."),
                              http::query_parameter("kind", "Of this kind, such as storage; all if absent."),
                              http::query_parameter("month",
                                                    "For this month of UTC, such as 2026-11; all if absent.")}},
       .handler = [&service](const Request& request, const Responder& to) { list_quantities(service, request, to); }});
}

}  // namespace berth::api
