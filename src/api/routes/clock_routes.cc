// The server's clock: how it stands to the wall clock, and the word of an operator that the wall clock is right.

#include <boost/json/object.hpp>
#include <cstdlib>
#include <limits>

#include "api/routes/json_text.h"
#include "api/routes/request_reading.h"
#include "api/routes/route_groups.h"
#include "base/clock_discipline.h"

namespace berth::api {
namespace {

using http::Access;
using http::Method;
using http::Request;
using http::Responder;

constexpr std::int64_t kMostOffsetMs = std::numeric_limits<std::int64_t>::max() / 2000;

boost::json::object clock_view(const ClockFacts& clock) {
  return {{"time", to_iso8601(clock.time)},
          {"wall_time", to_iso8601(clock.time + clock.wall_offset_ms)},
          {"offset_ms", clock.wall_offset_ms},
          {"followed", clock.followed}};
}

// `offset_ms` is what the operator saw, so that a wall clock that has jumped again meanwhile is not confirmed unseen.
Result<void> check_confirmable(const ClockFacts& clock, std::int64_t offset_ms) {
  if (clock.followed) return conflict("the wall clock is followed; there is nothing to confirm");
  if (std::abs(clock.wall_offset_ms - offset_ms) <= ClockDiscipline::kSmallUs / 1000) return {};
  return conflict("the wall clock is " + std::to_string(clock.wall_offset_ms) +
                  " ms ahead of the server's clock by now, not " + std::to_string(offset_ms) +
                  " ms; look again (berth clock)");
}

void confirm(Service& service, const Request& request, const Responder& responder) {
  const ClockFacts clock = service.facts().clock;
  if (const auto confirmable = check_confirmable(clock, integer_of(request, "offset_ms", 0)); !confirmable) {
    responder.fail(confirmable.error());
    return;
  }
  service.submit(origin_of(request), ConfirmClock{clock.wall_offset_ms, request.subject},
                 [&service, responder](const Result<control::Reply>& reply) {
                   if (!reply) {
                     responder.fail(reply.error());
                     return;
                   }
                   responder.send(json_answer(clock_view(service.facts().clock)));
                 });
}

}  // namespace

void add_clock_routes(http::Router& router, Service& service) {
  router.add({.method = Method::kGet,
              .pattern = "/v1/clock",
              .access = Access::kToken,
              .threads = http::Threads::kReads,
              .doc = {.operation_id = "getClock",
                      .summary = "The server's clock and the wall clock of its machine.",
                      .responses = {{.status = 200, .description = "Both.", .schema = "Clock"}},
                      .tags = {"cluster"}},
              .handler = [&service](const Request&, const Responder& to) {
                to.send(json_answer(clock_view(service.facts().clock)));
              }});
  router.add({.method = Method::kPost,
              .pattern = "/v1/clock/confirm",
              .access = Access::kToken,
              .doc = {.operation_id = "confirmClock",
                      .summary = "An operator vouches that the wall clock is right; the server's clock follows it.",
                      .responses = {{.status = 200, .description = "It is followed.", .schema = "Clock"},
                                    {.status = 409, .description = "It is followed already, or has another offset."}},
                      .description = "Time limits, bills and retention count the time between as time that has passed.",
                      .tags = {"cluster"},
                      .parameters = {http::integer_parameter("offset_ms", "The offset that is confirmed, as read.",
                                                             -kMostOffsetMs, kMostOffsetMs)}},
              .handler = [&service](const Request& request, const Responder& to) { confirm(service, request, to); }});
}

}  // namespace berth::api
