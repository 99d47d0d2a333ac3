// Which of the usual pitfalls the cluster is in, and what would mend them.

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "api/routes/json_text.h"
#include "api/routes/request_reading.h"
#include "api/routes/route_groups.h"

namespace berth::api {
namespace {

namespace json = boost::json;
using http::Access;
using http::Method;
using http::Request;
using http::Responder;

json::object item_view(const Advice& item) {
  json::object view{{"code", name_of(item.code)},
                    {"pitfall", name_of(pitfall_of(item.code))},
                    {"severity", name_of(item.severity)},
                    {"about", name_of(item.about)}};
  if (!item.name.empty()) view["name"] = item.name;
  view["text"] = item.text;
  view["remedy"] = item.remedy;
  return view;
}

void get_advice(Service& service, const Request&, const Responder& responder) {
  const AdviceReport report = service.advice();
  json::array items;
  for (const Advice& item : report.items) items.push_back(item_view(item));
  json::array left_out;
  for (const auto& [code, count] : report.left_out)
    left_out.push_back(json::object{{"code", name_of(code)}, {"count", count}});
  responder.send(json_answer(json::object{{"time", to_iso8601(report.time)},
                                          {"items", std::move(items)},
                                          {"left_out", std::move(left_out)},
                                          {"complete", report.complete},
                                          {"seq", report.seq}}));
}

}  // namespace

void add_advice_routes(http::Router& router, Service& service) {
  router.add(
      {.method = Method::kGet,
       .pattern = "/v1/advice",
       .access = Access::kToken,
       .threads = http::Threads::kLongReads,
       .doc = {.operation_id = "getAdvice",
               .summary = "Which of the usual pitfalls the cluster is in, with numbers, and what would mend them.",
               .responses = {{.status = 200, .description = "Warnings first.", .schema = "Advice"}},
               .description = "From the state at the moment of asking; nothing is changed by it (docs/advice.md).",
               .tags = {"cluster"}},
       .handler = [&service](const Request& request, const Responder& to) { get_advice(service, request, to); }});
}

}  // namespace berth::api
