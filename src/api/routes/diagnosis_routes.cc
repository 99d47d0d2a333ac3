// The production checklist, tried on the running cluster.

#include <array>
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

void get_diagnosis(Service& service, const Request&, const Responder& responder) {
  json::array items;
  std::array<std::int64_t, EnumNames<CheckResult>::kNames.size()> counts{};
  for (const Finding& finding : service.diagnosis()) {
    ++counts[static_cast<std::size_t>(finding.result)];
    items.push_back(json::object{{"area", name_of(finding.area)},
                                 {"check", finding.check},
                                 {"result", name_of(finding.result)},
                                 {"evidence", finding.evidence},
                                 {"remedy", finding.remedy}});
  }
  const auto count = [&](CheckResult result) { return counts[static_cast<std::size_t>(result)]; };
  const std::int64_t judged = static_cast<std::int64_t>(items.size()) - count(CheckResult::kUnseen);
  responder.send(json_answer(json::object{{"items", std::move(items)},
                                          {"ok", count(CheckResult::kOk)},
                                          {"missing", count(CheckResult::kMissing)},
                                          {"broken", count(CheckResult::kBroken)},
                                          {"cannot_be_seen", count(CheckResult::kUnseen)},
                                          {"pass_pct", judged == 0 ? 0 : 100 * count(CheckResult::kOk) / judged}}));
}

}  // namespace

void add_diagnosis_routes(http::Router& router, Service& service) {
  router.add(
      {.method = Method::kGet,
       .pattern = "/v1/diagnosis",
       .access = Access::kToken,
       .threads = http::Threads::kLongReads,
       .doc = {.operation_id = "getDiagnosis",
               .summary =
                   "The production checklist, tried on the running cluster, with what was seen and what mends it.",
               .responses = {{.status = 200, .description = "By area.", .schema = "Diagnosis"}},
               .description = "From the state at the moment of asking; nothing is changed by it (docs/doctor.md).",
               .tags = {"cluster"}},
       .handler = [&service](const Request& request, const Responder& to) { get_diagnosis(service, request, to); }});
}

}  // namespace berth::api
