#include "api/http/problem.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

namespace berth::http {

int status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalid:
      return 400;
    case ErrorCode::kNotFound:
      return 404;
    case ErrorCode::kConflict:
      return 409;
    case ErrorCode::kUnavailable:
      return 503;
    case ErrorCode::kDenied:
      return 403;
    case ErrorCode::kTooLarge:
      return 413;
    case ErrorCode::kCorrupt:
      return 500;
    case ErrorCode::kIo:
      return 500;
    case ErrorCode::kUnsupported:
      return 422;  // understood, and cannot be done (yet): not the server's fault
  }
  return 500;
}

namespace {

// A document with several mistakes is refused with one line for each.
boost::json::array lines_of(std::string_view text) {
  boost::json::array lines;
  while (true) {
    const std::size_t end = text.find('\n');
    lines.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return lines;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

Response problem(int status, std::string_view code, std::string_view detail) {
  boost::json::object document;
  document["type"] = "urn:berth:problem:" + std::string(code);
  document["title"] = reason_phrase(status);
  document["status"] = status;
  document["detail"] = detail;
  document["code"] = code;
  if (detail.find('\n') != std::string_view::npos) document["mistakes"] = lines_of(detail);
  return {.status = status,
          .content_type = "application/problem+json",
          .headers = {},
          .body = boost::json::serialize(document)};
}

Response problem(ErrorCode code, std::string_view detail) {
  Response response = problem(status_of(code), name_of(code), detail);
  if (response.status == 503) response.headers.push_back({"Retry-After", "1"});
  return response;
}

Response too_many_requests(std::int64_t wait_ms) {
  Response response = problem(429, "rate-limited", "too many requests from you; ask again later, and less often");
  response.headers.push_back({"Retry-After", std::to_string((wait_ms + 999) / 1000)});
  return response;
}

void state_instance(Response& response, std::string_view path) {
  if (response.content_type != "application/problem+json") return;
  boost::json::error_code ec;
  boost::json::value document = boost::json::parse(response.body, ec);
  if (ec || !document.is_object() || document.as_object().contains("instance")) return;
  document.as_object()["instance"] = path;
  response.body = boost::json::serialize(document);
}

}  // namespace berth::http
