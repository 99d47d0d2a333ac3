#include "api/routes/past_reads.h"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <string_view>

#include "api/routes/access.h"
#include "api/routes/request_reading.h"
#include "api/routes/route_groups.h"

namespace berth::api {
namespace {

using http::Request;
using http::Responder;

constexpr std::array<std::string_view, 7> kOperations{"getCluster", "listJobs",  "getJob", "listQueues",
                                                      "getQueue",   "listNodes", "getNode"};

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

void read_past(Service& service, const std::string& operation, const Request& request, const Responder& to) {
  if (const auto ok = check(request); !ok) {
    to.fail(ok.error());
    return;
  }
  const auto kept = std::make_shared<Request>(request);
  kept->query.erase("at");
  service.at(static_cast<Seq>(integer_of(request, "at", 1)), [operation, kept, to](const Result<Service*>& past) {
    if (past) {
      answer_from(**past, operation, *kept, to);
    } else {
      to.fail(past.error());
    }
  });
}

}  // namespace

http::Router with_past_reads(const http::Router& open, Service& service) {
  http::Router router;
  for (http::Route route : open.routes()) {
    const std::string operation = route.doc.operation_id.text;
    if (has_past(operation)) {
      route.doc.parameters.push_back(http::integer_parameter(
          "at", "As it was after the event with this number, of live jobs alone. Seen with the roles of today.", 1,
          std::numeric_limits<std::int64_t>::max()));
      const bool tells_404 = std::any_of(route.doc.responses.begin(), route.doc.responses.end(),
                                         [](const http::ResponseDoc& one) { return one.status == 404; });
      if (!tells_404) route.doc.responses.push_back({.status = 404, .description = "There is no such event."});
      route.handler = [&service, operation, now = std::move(route.handler)](const Request& request,
                                                                            const Responder& to) {
        if (request.query_value("at")) {
          read_past(service, operation, request, to);
        } else {
          now(request, to);
        }
      };
    }
    router.add(std::move(route));
  }
  return router;
}

}  // namespace berth::api
