#include "api/routes/request_reading.h"

#include <charconv>

#include "api/http/json_decode.h"
#include "api/routes/json_text.h"
#include "base/check.h"

namespace berth::api {
namespace {

namespace json = boost::json;

template <class Integer>
std::optional<Integer> parse(std::string_view text) {
  Integer number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string between(std::int64_t low, std::int64_t high) {
  return " must be an integer between " + std::to_string(low) + " and " + std::to_string(high);
}

}  // namespace

std::string without_port(std::string_view peer) {
  const std::size_t colon = peer.rfind(':');
  if (colon == std::string_view::npos) return std::string(peer);
  std::string_view host = peer.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return std::string(host);
}

Origin origin_of(const http::Request& request) {
  return {.subject = request.subject,
          .proof = std::string(request.principal.proof),
          .address = without_port(request.peer),
          .request = request.id};
}

Result<JobId> job_id_of(const http::Request& request) {
  const auto number = parse<std::uint64_t>(request.path_params.at("id"));
  if (!number || *number == 0 || !JobId(*number).valid()) return invalid("a job's id is a number from 1 on");
  return JobId(*number);
}

std::int64_t integer_of(const http::Request& request, const std::string& name, std::int64_t fallback) {
  const auto text = request.query_value(name);
  if (!text) return fallback;
  const auto number = parse<std::int64_t>(*text);
  BERTH_CHECK(number.has_value());
  return *number;
}

Timestamp time_of(const http::Request& request, const std::string& name, Timestamp fallback) {
  const auto text = request.query_value(name);
  if (!text) return fallback;
  const auto time = from_iso8601(*text);
  BERTH_CHECK(time.has_value());
  return *time;
}

bool flag_of(const http::Request& request, const std::string& name) { return request.query_value(name) == "true"; }

std::string text_of(const http::Request& request, const std::string& name) {
  return request.query_value(name).value_or("");
}

Result<json::object> object_of(const http::Request& request) {
  auto value = http::decode_json(request.body);
  if (!value) return value.error();
  if (!value->is_object()) return invalid("the body must be a JSON object");
  return std::move(value->get_object());
}

Result<std::int64_t> take_integer(json::object& object, const std::string& name, std::int64_t low, std::int64_t high) {
  const json::value* value = object.if_contains(name);
  if (value == nullptr) return invalid(name + " is missing");
  std::optional<std::int64_t> number;
  if (value->is_int64()) number = value->get_int64();
  if (!number || *number < low || *number > high) return invalid(name + between(low, high));
  object.erase(name);
  return *number;
}

Result<void> refuse_rest(const json::object& object) {
  if (object.empty()) return {};
  return invalid("unknown member '" + std::string(object.begin()->key()).substr(0, 80) + "'");
}

http::ParameterDoc job_parameter() {
  http::ParameterDoc parameter = http::path_parameter("id", "The job's id.");
  parameter.type = http::ParameterType::kInteger;
  parameter.low = 1;
  return parameter;
}

http::ParameterDoc node_parameter() { return http::path_parameter("name", "The node's name."); }

http::ParameterDoc queue_parameter() {
  return http::path_parameter("path", "The queue's path, its slashes written as %2F.");
}

http::ParameterDoc limit_parameter() {
  return http::integer_parameter("limit", "At most so many items; 100 if absent.", 1, kMaxLimit);
}

http::ParameterDoc cursor_parameter() {
  return http::query_parameter("cursor", "Where to go on: next_cursor of the page before, with the same sorting.");
}

std::function<void(Result<control::Reply>)> answer_job_command(const http::Responder& responder, JobId job,
                                                               int status) {
  return [responder, job, status](const Result<control::Reply>& reply) {
    if (!reply) {
      responder.fail(reply.error());
      return;
    }
    responder.send(json_answer(json::object{{"id", job.value()}, {"unchanged", reply.value().unchanged}}, status));
  };
}

}  // namespace berth::api
