#include "api/routes/past_reads.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>

#include "api/routes/access.h"
#include "api/routes/request_reading.h"
#include "api/routes/route_groups.h"

namespace berth::api {
namespace {

using http::Request;
using http::Responder;

constexpr std::array<std::string_view, 12> kOperations{"getCluster", "listJobs", "getJob",       "explainJob",
                                                       "listQueues", "getQueue", "explainShare", "listNodes",
                                                       "getNode",    "getUsage", "getBill",      "tryBill"};

bool has_past(std::string_view operation) {
  return std::find(kOperations.begin(), kOperations.end(), operation) != kOperations.end();
}

// The operation on a service of the past, behind its rule.
void answer_from(Service& past, const std::string& operation, const Request& request, const Responder& to) {
  http::Router open;
  add_cluster_routes(open, past);
  add_job_routes(open, past);
  add_queue_routes(open, past);
  add_node_routes(open, past);
  add_usage_routes(open, past);
  add_billing_routes(open, past);
  const http::Router router = guarded(open, past);
  for (const http::Route& route : router.routes()) {
    if (route.doc.operation_id.text == operation) return route.handler(request, to);
  }
}

// Finished jobs have left the state; the log of finished jobs is that of now.
Result<void> check(const Request& request) {
  for (const char* name : {"finished", "since", "until"}) {
    if (request.query_value(name) && request.query_value(name) != "false")
      return invalid(std::string("at: the state of a past moment has live jobs alone; leave out ") + name);
  }
  if (text_of(request, "phase") == "finished")
    return invalid("at: the state of a past moment has live jobs alone; phase=finished is not among them");
  return {};
}

Moment moment_of(const Request& request) {
  const std::string client = request.principal.name.empty() ? request.peer : request.principal.name;
  const std::string at = text_of(request, "at");
  const bool is_number = at.find_first_not_of("0123456789") == std::string::npos;
  if (is_number) return {.seq = static_cast<Seq>(integer_of(request, "at", 1)), .client = client};
  return {.time = time_of(request, "at", {}), .client = client};
}

void read_past(Service& service, const std::string& operation, const Request& request, const Responder& to) {
  if (const auto ok = check(request); !ok) {
    to.fail(ok.error());
    return;
  }
  const auto kept = std::make_shared<Request>(request);
  kept->query.erase("at");
  service.at(moment_of(request), [operation, kept, to](const Result<Service*>& past) {
    if (past) {
      answer_from(**past, operation, *kept, to);
    } else {
      to.fail(past.error());
    }
  });
}

void add_past(http::Route& route, Service& service) {
  const std::string operation = route.doc.operation_id.text;
  route.doc.parameters.push_back(http::query_parameter(
      "at",
      "As it was after the event with this number, or at this time: of live jobs alone. Seen with the roles of today.",
      http::ParameterType::kMoment));
  const bool tells_404 = std::any_of(route.doc.responses.begin(), route.doc.responses.end(),
                                     [](const http::ResponseDoc& one) { return one.status == 404; });
  if (!tells_404) route.doc.responses.push_back({.status = 404, .description = "There is no such moment."});
  route.handler = [&service, operation, now = std::move(route.handler)](const Request& request, const Responder& to) {
    if (request.query_value("at")) {
      read_past(service, operation, request, to);
    } else {
      now(request, to);
    }
  };
}

std::string refusal_of(const http::Router& router) {
  std::string paths;
  for (const http::Route& route : router.routes()) {
    if (has_past(route.doc.operation_id.text) && route.method == http::Method::kGet)
      paths += (paths.empty() ? "" : ", ") + route.pattern;
  }
  return "at: this route answers of now alone; a past moment is told by " + paths;
}

}  // namespace

http::Router with_past_reads(const http::Router& open, Service& service) {
  const std::string refusal = refusal_of(open);
  http::Router router;
  for (http::Route route : open.routes()) {
    if (has_past(route.doc.operation_id.text)) {
      add_past(route, service);
    } else if (route.access == http::Access::kToken) {
      route.doc.refused_parameters["at"] = refusal;
    }
    router.add(std::move(route));
  }
  return router;
}

}  // namespace berth::api
