#include "api/http/dispatch.h"

#include <algorithm>
#include <charconv>

#include "api/http/screen.h"
#include "api/http/url.h"
#include "base/timestamp.h"
#include "model/document/renamed.h"

namespace berth::http {
namespace {

Response bad_request(std::string_view detail) { return problem(400, "bad-request", detail); }

Response with_header(Response response, std::string name, std::string value) {
  response.headers.push_back({std::move(name), std::move(value)});
  return response;
}

std::string allow_list(const std::vector<Method>& methods) {
  std::string list;
  for (const Method method : methods) list += (list.empty() ? "" : ", ") + std::string(name_of(method));
  return list;
}

// The origin form of the target: "http://host/path" is as good as "/path" (RFC 9112, section 3.2.2).
std::string_view origin_form(std::string_view target) {
  const std::size_t scheme_end = target.find("://");
  if (scheme_end == std::string_view::npos) return target;
  const std::string_view scheme = target.substr(0, scheme_end);
  if (!equals_ignoring_case(scheme, "http") && !equals_ignoring_case(scheme, "https")) return target;
  const std::size_t path = target.find_first_of("/?", scheme_end + 3);
  if (path == std::string_view::npos) return "/";
  return target.substr(path);
}

// Headers that decide something must not be given twice: which one counts would be a guess.
std::optional<Response> refuse_repeated(const std::vector<Header>& headers) {
  for (const std::string_view name : {"authorization", "content-type", "content-encoding", "idempotency-key",
                                      "last-event-id", "expect", "cookie", "x-berth-change"}) {
    if (std::count_if(headers.begin(), headers.end(), [&](const Header& each) { return each.name == name; }) > 1) {
      return bad_request("the header " + std::string(name) + " is given more than once");
    }
  }
  return std::nullopt;
}

bool has_header(const std::vector<Header>& headers, std::string_view name) {
  return std::any_of(headers.begin(), headers.end(), [&](const Header& each) { return each.name == name; });
}

bool is_plain_value(std::string_view text) {
  return text.size() <= 255 && std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}

std::optional<Response> take_headers(Request& request) {
  request.idempotency_key = request.header("idempotency-key");
  if (request.idempotency_key.empty() && has_header(request.headers, "idempotency-key")) {
    return bad_request("Idempotency-Key is given but empty; give a key, or leave the header out");
  }
  request.last_event_id = request.header("last-event-id");
  if (!is_plain_value(request.idempotency_key) || !is_plain_value(request.last_event_id)) {
    return bad_request("Idempotency-Key and Last-Event-ID are at most 255 visible ASCII characters");
  }
  if (request.header("accept").find("application/x-ndjson") != std::string_view::npos) {
    request.stream_format = StreamFormat::kNdjson;
  }
  return std::nullopt;
}

bool is_one_of(std::string_view content_type, const std::vector<std::string>& types) {
  const std::string_view type = trim_whitespace(content_type.substr(0, content_type.find(';')));
  return std::any_of(types.begin(), types.end(),
                     [&](const std::string& each) { return equals_ignoring_case(type, each); });
}

std::string joined(const std::vector<std::string>& values) {
  std::string text;
  for (const std::string& value : values) text += (text.empty() ? "" : ", ") + value;
  return text;
}

std::optional<Response> check_body_headers(const Route& route, const Request& request, bool has_body) {
  const std::string_view encoding = request.header("content-encoding");
  if (!encoding.empty() && !equals_ignoring_case(encoding, "identity")) {
    return problem(415, "unsupported-media-type", "bodies are taken without Content-Encoding");
  }
  const bool takes_body = !route.doc.request_schema.empty();
  if (has_body && !takes_body) return bad_request("this route takes no body");
  if (takes_body && !has_body) return bad_request("this route needs a body: " + joined(route.doc.request_types));
  if (takes_body && !is_one_of(request.header("content-type"), route.doc.request_types)) {
    return problem(415, "unsupported-media-type", "the body has to be " + joined(route.doc.request_types));
  }
  return std::nullopt;
}

std::optional<std::int64_t> integer_in(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

bool has_type(std::string_view value, ParameterType type) {
  switch (type) {
    case ParameterType::kString:
      return true;
    case ParameterType::kBoolean:
      return value == "true" || value == "false";
    case ParameterType::kTime: {
      const auto time = from_iso8601(value);
      return time && !time->is_never();
    }
    case ParameterType::kInteger:
      return integer_in(value).has_value();
    case ParameterType::kMoment:
      return integer_in(value).value_or(0) > 0 || has_type(value, ParameterType::kTime);
  }
  return false;
}

const char* type_phrase(ParameterType type) {
  switch (type) {
    case ParameterType::kString:
      return "a text";
    case ParameterType::kBoolean:
      return "true or false";
    case ParameterType::kTime:
      return "a time such as 2026-11-21T08:15:30Z or a date such as 2026-11-21";
    case ParameterType::kInteger:
      return "a 64-bit integer";
    case ParameterType::kMoment:
      return "the number of an event, from 1 on, or a time such as 2026-11-21T08:15Z";
  }
  return "?";
}

std::optional<Response> check_value(const ParameterDoc& parameter, const std::string& value) {
  const std::string has_to_be = "the query parameter " + parameter.name + " has to be ";
  if (!has_type(value, parameter.type)) {
    const bool is_time = parameter.type == ParameterType::kTime || parameter.type == ParameterType::kMoment;
    return problem(400, is_time ? "invalid" : "bad-request",
                   has_to_be + type_phrase(parameter.type) + (is_time ? leap_second_note(value) : ""));
  }
  if (parameter.type == ParameterType::kInteger) {
    const std::int64_t number = *integer_in(value);
    if (number < parameter.low || number > parameter.high) {
      return problem(
          400, "invalid",
          has_to_be + "an integer between " + std::to_string(parameter.low) + " and " + std::to_string(parameter.high));
    }
  }
  const auto& values = parameter.values;
  if (!values.empty() && std::find(values.begin(), values.end(), value) == values.end()) {
    const std::vector<std::string_view> known(values.begin(), values.end());
    if (const auto now = document::renamed(value, known))
      return bad_request("the query parameter " + parameter.name + ": '" + value + "' is now '" + std::string(*now) +
                         "'");
    return bad_request("the query parameter " + parameter.name + " has to be one of: " + joined(values));
  }
  return std::nullopt;
}

std::optional<Response> refuse_undocumented(const RouteDoc& doc, const Request& request) {
  std::vector<std::string> known;
  for (const ParameterDoc& parameter : doc.parameters) {
    if (parameter.place == ParameterPlace::kQuery) known.push_back(parameter.name);
  }
  for (const auto& [name, value] : request.query) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    if (const auto refused = doc.refused_parameters.find(name); refused != doc.refused_parameters.end())
      return bad_request(refused->second);
    if (known.empty()) return bad_request("this route takes no query parameters");
    return bad_request("unknown query parameter; this route takes: " + joined(known));
  }
  return std::nullopt;
}

std::optional<Response> check_query(const RouteDoc& doc, const Request& request) {
  if (auto refusal = refuse_undocumented(doc, request)) return refusal;
  for (const ParameterDoc& parameter : doc.parameters) {
    if (parameter.place != ParameterPlace::kQuery) continue;
    const auto [first, last] = request.query.equal_range(parameter.name);
    if (parameter.required && first == last)
      return bad_request("the query parameter " + parameter.name + " is missing");
    if (!parameter.repeated && first != last && std::next(first) != last) {
      return bad_request("the query parameter " + parameter.name + " is given more than once");
    }
    for (auto each = first; each != last; ++each) {
      if (auto refusal = check_value(parameter, each->second)) return refusal;
    }
  }
  return std::nullopt;
}

bool segments_are_decodable(std::string_view path) {
  return decode_segment(path).has_value();  // a slash is a segment character to the decoder
}

Response answer_options(const RouteMatch& match, std::string_view path) {
  if (path == "*")
    return with_header({.status = 204, .content_type = {}, .headers = {}, .body = {}}, "Allow",
                       "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
  if (match.allowed.empty()) return problem(404, "not-found", "no such path");
  return with_header({.status = 204, .content_type = {}, .headers = {}, .body = {}}, "Allow",
                     allow_list(match.allowed));
}

struct Target {
  std::string_view path;
  std::optional<std::string_view> query;
};

Target split(std::string_view sent) {
  const std::string_view target = origin_form(sent);
  const std::size_t question = target.find('?');
  if (question == std::string_view::npos) return {target, std::nullopt};
  return {question == 0 ? "/" : target.substr(0, question), target.substr(question + 1)};
}

}  // namespace

namespace {

// A browser shows a client certificate to the server whichever page makes it ask, so pages of other sites could give
// orders with it. Browsers say which page asks.
bool is_of_another_site(const Request& request) {
  const std::string_view site = request.header("sec-fetch-site");
  if (!site.empty() && site != "same-origin" && site != "none") return true;
  const std::string_view origin = request.header("origin");
  return !origin.empty() && origin != "https://" + std::string(request.header("host"));
}

}  // namespace

namespace {

// A change by a session's cookie has to carry what only a page of this server knows.
std::optional<Response> refuse_forged(const Request& request, const Identification& found) {
  if (found.change_token.empty()) return std::nullopt;
  const std::string_view site = request.header("sec-fetch-site");
  if (!site.empty() && site != "same-origin" && site != "none")
    return problem(403, "cross-site", "a page of another site asks with the browser's session; that is refused");
  if (request.method == Method::kGet || request.method == Method::kHead || request.method == Method::kOptions)
    return std::nullopt;
  if (digest_of(request.header("x-berth-change")) == digest_of(found.change_token)) return std::nullopt;
  return problem(403, "change-token", "a change by a session of the web page needs the header X-Berth-Change");
}

}  // namespace

std::string request_id_of(const Head& head) {
  constexpr std::size_t kLongest = 64;
  for (const Header& one : head.headers) {
    if (one.name == "x-request-id" && !one.value.empty() && one.value.size() <= kLongest && is_plain_value(one.value))
      return one.value;
  }
  return head.fresh_id;
}

Response unauthenticated(const Peer& peer, std::string_view refusal) {
  std::string detail = refusal.empty() ? "a bearer token of this server is needed" : std::string(refusal);
  if (!peer.refusal.empty()) detail += ": " + peer.refusal;
  return with_header(problem(401, "unauthenticated", detail), "WWW-Authenticate",
                     std::string("Bearer realm=\"berth\"") + (refusal.empty() ? "" : ", error=\"invalid_token\""));
}

namespace {

// Returns the answer 429 if the client is above its rate limit. What is public has a count of its own for each address:
// a flood of wrong tokens does not make the health check fail that comes from the same address.
std::optional<Response> pass_gate(const Gate& gate, const Request& request, const Peer& peer, bool is_public) {
  if (!gate.take) return std::nullopt;
  const std::string address = address_of(peer.address);
  const std::int64_t wait_ms = gate.take(request.subject, is_public ? "public " + address : address);
  if (wait_ms > 0) return too_many_requests(wait_ms);
  return std::nullopt;
}

std::variant<Admitted, Response, Waiting> decide(Head head, const Target& target, const Router& router,
                                                 const Authenticator& authenticator, const Peer& peer,
                                                 const Gate& gate) {
  const auto method = method_named(head.method);
  if (!method) return problem(501, "method-not-implemented", "this server has no such method");
  const std::string_view path = target.path;
  const bool asterisk = path == "*" && *method == Method::kOptions;
  if (!asterisk && (path.front() != '/' || !segments_are_decodable(path))) {
    return bad_request("the target is not a path of percent-encoded UTF-8 without control characters");
  }
  if (auto refusal = refuse_repeated(head.headers)) return *refusal;

  RouteMatch match = router.match(*method, path);
  Admitted admitted{.route = match.route, .request = {}};
  Request& request = admitted.request;
  request.method = *method;
  request.path = path;
  request.path_params = std::move(match.path_params);
  request.id = request_id_of(head);
  request.headers = std::move(head.headers);
  const bool is_public = match.route != nullptr && match.route->access == Access::kPublic;
  if (!is_public) {
    auto found = authenticator.identify(request.header("authorization"), request.header("cookie"), peer);
    if (!found.subject && found.until_known) return Waiting{std::move(found.until_known)};
    if (!found.subject) {
      if (auto wait = pass_gate(gate, request, peer, is_public)) return *wait;
      if (gate.unauthenticated) gate.unauthenticated(address_of(peer.address));
      return unauthenticated(peer, found.refusal);
    }
    if (found.subject->proof == kByCertificate && is_of_another_site(request)) {
      return problem(403, "cross-site", "a page of another site asks with the browser's certificate; that is refused");
    }
    if (auto refusal = refuse_forged(request, found)) return *refusal;
    const bool signed_in = found.subject->proof == kByIssuer || found.subject->proof == kBySession;
    if (signed_in && gate.signed_in) {
      const std::string session = found.change_token.empty() ? "" : text_of(digest_of(found.change_token));
      gate.signed_in(*found.subject, session, address_of(peer.address));
    }
    request.subject = found.subject->name;
    request.principal = std::move(*found.subject);
  }
  if (auto wait = pass_gate(gate, request, peer, is_public)) return *wait;
  if (*method == Method::kOptions) return answer_options(match, path);
  if (match.allowed.empty()) return problem(404, "not-found", "no such path");
  if (match.route == nullptr) {
    return with_header(problem(405, "method-not-allowed", "this path serves: " + allow_list(match.allowed)), "Allow",
                       allow_list(match.allowed));
  }
  if (target.query) {
    auto query = decode_query(*target.query);
    if (!query) return bad_request(query.error().message);
    request.query = std::move(*query);
  }
  if (auto refusal = check_query(match.route->doc, request)) return *refusal;
  if (auto refusal = check_body_headers(*match.route, request, head.has_body)) return *refusal;
  if (auto refusal = take_headers(request)) return *refusal;
  const std::string_view expect = request.header("expect");
  if (!expect.empty() && !equals_ignoring_case(expect, "100-continue")) {
    return problem(417, "expectation-failed", "the only expectation met is 100-continue");
  }
  admitted.expects_continue = !expect.empty();
  return admitted;
}

}  // namespace

std::variant<Admitted, Response, Waiting> admit(Head head, const Router& router, const Authenticator& authenticator,
                                                const Peer& peer, const Gate& gate) {
  const Target target = split(head.target);
  auto decision = decide(std::move(head), target, router, authenticator, peer, gate);
  if (auto* refusal = std::get_if<Response>(&decision)) state_instance(*refusal, target.path);
  return decision;
}

}  // namespace berth::http
