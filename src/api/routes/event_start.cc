#include "api/routes/event_start.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string>

#include "api/http/problem.h"
#include "api/routes/request_reading.h"

namespace berth::api {

using http::Request;

bool wants_event_stream(const Request& request) {
  if (const auto follow = request.query_value("follow")) return *follow == "true";
  return request.header("accept").find("text/event-stream") != std::string_view::npos;
}

Result<Seq> event_start_of(const Request& request) {
  if (!request.last_event_id.empty()) {
    const std::string& text = request.last_event_id;
    Seq last = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), last);
    if (error != std::errc() || end != text.data() + text.size() || last >= std::numeric_limits<std::int64_t>::max()) {
      return invalid("Last-Event-ID must be the id of an event, a number");
    }
    return last + 1;
  }
  return static_cast<Seq>(std::max<std::int64_t>(integer_of(request, "from", 1), 1));
}

std::optional<http::Response> refuse_beyond_end(Service& service, const Request& request, Seq from) {
  const Seq last_seen = from - 1;
  if (request.last_event_id.empty() || last_seen == 0) return std::nullopt;
  const auto seen = service.events(last_seen, 1);
  if (!seen || !seen->empty()) return std::nullopt;
  return http::problem(410, "beyond-end",
                       "there is no event " + std::to_string(last_seen) +
                           " (Last-Event-ID): this is not the log that was followed, but perhaps a restored backup; "
                           "begin again from a snapshot");
}

http::Response event_refusal(const Error& error) {
  if (error.code == ErrorCode::kNotFound) return http::problem(410, "gone", error.message);
  return http::problem(error);
}

}  // namespace berth::api
