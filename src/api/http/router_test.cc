#include "api/http/router.h"

#include <doctest/doctest.h>

#include <boost/json/serialize.hpp>
#include <functional>

#include "api/http/dispatch.h"
#include "api/http/openapi.h"
#include "api/http/url.h"

namespace berth::http {
namespace {

constexpr std::string_view kToken = "0123456789abcdef0123456789abcdef";

void ignore(const Request&, const Responder& responder) { responder.send({}); }

Route route(Method method, std::string pattern, std::string operation_id, std::vector<ParameterDoc> parameters = {}) {
  return {.method = method,
          .pattern = std::move(pattern),
          .access = Access::kToken,
          .doc = {.operation_id = std::move(operation_id),
                  .summary = "Does it.",
                  .responses = {{.status = 200, .description = "Done."}},
                  .parameters = std::move(parameters)},
          .handler = ignore};
}

Router sample_router() {
  Router router;
  router.add(route(Method::kGet, "/v1/jobs/{id}", "getJob", {path_parameter("id", "The job.")}));
  router.add(route(Method::kDelete, "/v1/jobs/{id}", "deleteJob", {path_parameter("id", "The job.")}));
  router.add(route(Method::kGet, "/v1/jobs/summary", "summarizeJobs"));
  ParameterDoc state = query_parameter("state", "Only these.");
  state.values = {"pending", "running"};
  state.repeated = true;
  router.add(route(Method::kGet, "/v1/jobs", "listJobs",
                   {integer_parameter("limit", "At most so many.", 1, 1000),
                    query_parameter("since", "Not before.", ParameterType::kTime),
                    query_parameter("at", "As it was.", ParameterType::kMoment), state}));
  Route prices = route(Method::kGet, "/v1/prices", "getPrices");
  prices.doc.refused_parameters["at"] = "at: prices are those of now";
  router.add(prices);
  Route submit = route(Method::kPost, "/v1/jobs", "submitJob");
  submit.doc.request_schema = "Job";
  submit.doc.responses = {{.status = 201, .description = "Taken.", .schema = "Job"},
                          {.status = 409, .description = "The key was used for another job."}};
  router.add(submit);
  Route health = route(Method::kGet, "/health", "health");
  health.access = Access::kPublic;
  router.add(health);
  Route events = route(Method::kGet, "/v1/events", "events");
  events.doc.responses = {{.status = 200, .description = "A page.", .schema = "Job"}};
  events.doc.streamed_schema = "Job";
  router.add(events);
  return router;
}

Authenticator sample_authenticator() {
  Authenticator authenticator;
  REQUIRE(authenticator.add(kToken, {.name = "ann", .user = "ann"}));
  return authenticator;
}

std::variant<Admitted, Response, Waiting> ask(std::string_view method, std::string_view target,
                                              std::vector<Header> headers = {}, bool has_body = false,
                                              bool with_token = true) {
  static const Router router = sample_router();
  static const Authenticator authenticator = sample_authenticator();
  if (with_token) headers.push_back({"authorization", "Bearer " + std::string(kToken)});
  return admit({.method = method, .target = target, .headers = std::move(headers), .has_body = has_body}, router,
               authenticator);
}

int status_of_answer(const std::variant<Admitted, Response, Waiting>& decision) {
  const auto* response = std::get_if<Response>(&decision);
  return response == nullptr ? 200 : response->status;
}

TEST_CASE("dispatch: a request whose signed token waits for keys is neither admitted nor refused") {
  const Router router = sample_router();
  Authenticator authenticator = sample_authenticator();
  std::function<void()> ask_again;
  bool known = false;
  authenticator.verify_signed_by([&](std::string_view token, const TokenDigest&) -> Identification {
    CHECK(token == "a.b.c");
    if (known) return {.subject = policy::Subject{.name = "user:corp:ada"}};
    return {.refusal = "not yet",
            .until_known = [&](std::function<void()> callback) { ask_again = std::move(callback); }};
  });
  const auto asked = [&](const char* token) {
    return admit(
        {.method = "GET", .target = "/v1/jobs", .headers = {{"authorization", std::string("Bearer ") + token}}}, router,
        authenticator);
  };
  const auto first = asked("a.b.c");
  REQUIRE(std::holds_alternative<Waiting>(first));
  std::get<Waiting>(first).until_known([&] { known = true; });
  ask_again();
  const auto second = asked("a.b.c");
  CHECK_FALSE(std::holds_alternative<Waiting>(second));
  CHECK(status_of_answer(second) != 401);
  CHECK(status_of_answer(asked("a.b")) == 401);  // no signed token: nobody is asked
}

TEST_CASE("router: literal segments win, parameters are decoded after the split") {
  const Router router = sample_router();
  CHECK(router.match(Method::kGet, "/v1/jobs/summary").route->doc.operation_id.text == "summarizeJobs");
  const RouteMatch match = router.match(Method::kGet, "/v1/jobs/a%2Fb%20c");
  REQUIRE(match.route != nullptr);
  CHECK(match.path_params.at("id") == "a/b c");
  for (const std::string_view path : {"/v1/jobs/", "/v1/jobs/a/b", "/v1//jobs", "/v1/jobs/%zz", "/v1/jobs/%ff",
                                      "/v1/jobs/%00", "/", "", "v1/jobs", "/V1/jobs"}) {
    CAPTURE(path);
    CHECK(router.match(Method::kGet, path).route == nullptr);
  }
}

TEST_CASE("router: the methods of a path are known though none matches") {
  const Router router = sample_router();
  const RouteMatch match = router.match(Method::kPut, "/v1/jobs/7");
  CHECK(match.route == nullptr);
  CHECK(match.allowed == std::vector{Method::kGet, Method::kHead, Method::kDelete, Method::kOptions});
  CHECK(router.match(Method::kHead, "/v1/jobs/7").route->method == Method::kGet);
}

TEST_CASE("router: a route lacking documentation has a flaw") {
  const std::vector<Route> none;
  CHECK(documentation_flaw(route(Method::kGet, "/a", "a"), none).empty());
  CHECK_FALSE(documentation_flaw(route(Method::kGet, "/a", ""), none).empty());
  CHECK_FALSE(documentation_flaw(route(Method::kGet, "a", "a"), none).empty());
  CHECK_FALSE(documentation_flaw(route(Method::kHead, "/a", "a"), none).empty());
  CHECK_FALSE(documentation_flaw(route(Method::kGet, "/a/{id}", "a"), none).empty());
  CHECK_FALSE(documentation_flaw(route(Method::kGet, "/a", "a", {path_parameter("id", "x")}), none).empty());
  CHECK_FALSE(documentation_flaw(route(Method::kGet, "/a", "a", {query_parameter("q", "")}), none).empty());
  CHECK_FALSE(documentation_flaw(route(Method::kGet, "/b", "a"), {route(Method::kGet, "/a", "a")}).empty());
  CHECK_FALSE(documentation_flaw(route(Method::kGet, "/a", "b"), {route(Method::kGet, "/a", "a")}).empty());
  Route silent = route(Method::kGet, "/a", "a");
  silent.doc.responses.clear();
  CHECK_FALSE(documentation_flaw(silent, none).empty());
}

TEST_CASE("admit: each refusal has its status") {
  const Header json{"content-type", "application/json; charset=utf-8"};
  CHECK(status_of_answer(ask("GET", "/v1/jobs/7")) == 200);
  CHECK(status_of_answer(ask("GET", "http://x:1/v1/jobs/7")) == 200);
  CHECK(status_of_answer(ask("HEAD", "/v1/jobs/7")) == 200);
  CHECK(status_of_answer(ask("POST", "/v1/jobs", {json}, true)) == 200);
  CHECK(status_of_answer(ask("GET", "/v1/jobs?limit=5&state=pending&state=running")) == 200);
  CHECK(status_of_answer(ask("OPTIONS", "/v1/jobs")) == 204);
  CHECK(status_of_answer(ask("OPTIONS", "*")) == 204);
  CHECK(status_of_answer(ask("GET", "/nowhere")) == 404);
  CHECK(status_of_answer(ask("PUT", "/v1/jobs/7")) == 405);
  CHECK(status_of_answer(ask("TRACE", "/v1/jobs/7")) == 405);
  CHECK(status_of_answer(ask("TRACE", "/nowhere")) == 404);
  CHECK(status_of_answer(ask("BREW", "/v1/jobs/7")) == 501);
  CHECK(status_of_answer(ask("CONNECT", "x:443")) == 501);
  CHECK(status_of_answer(ask("GET", "*")) == 400);
  CHECK(status_of_answer(ask("GET", "ftp://x/")) == 400);
  CHECK(status_of_answer(ask("GET", "/v1/jobs/%0d%0a")) == 400);
  CHECK(status_of_answer(ask("GET", "/v1/jobs?limit=%ff")) == 400);
  CHECK(status_of_answer(ask("GET", "/v1/jobs?limit=five")) == 400);
  CHECK(status_of_answer(ask("GET", "/v1/jobs?limit=99999999999999999999")) == 400);
  CHECK(status_of_answer(ask("GET", "/v1/jobs?limit=0")) == 400);
  CHECK(status_of_answer(ask("GET", "/v1/jobs?limit=1000")) == 200);
  CHECK(status_of_answer(ask("GET", "/v1/jobs?limit=1001")) == 400);
  CHECK(status_of_answer(ask("GET", "/v1/jobs?limit=1&limit=2")) == 400);
  CHECK(status_of_answer(ask("GET", "/v1/jobs?since=2026-11-21")) == 200);
  CHECK(status_of_answer(ask("GET", "/v1/jobs?since=2026-11-21T08:15:30.123456%2B00:00")) == 200);
  CHECK(status_of_answer(ask("GET", "/v1/jobs?since=yesterday")) == 400);
  CHECK(status_of_answer(ask("GET", "/v1/jobs?since=never")) == 400);
  for (const char* moment : {"1", "9223372036854775807", "2026", "2026-11-21", "2026-11-21T08:15Z"}) {
    CHECK(status_of_answer(ask("GET", "/v1/jobs?at=" + std::string(moment))) == 200);
  }
  for (const char* moment : {"", "0", "-1", "9223372036854775808", "never", "yesterday", "1.5"}) {
    CHECK(status_of_answer(ask("GET", "/v1/jobs?at=" + std::string(moment))) == 400);
  }
  CHECK(status_of_answer(ask("GET", "/v1/jobs?state=gone")) == 400);
  CHECK(status_of_answer(ask("GET", "/v1/jobs?colour=red")) == 400);
  CHECK(status_of_answer(ask("GET", "/v1/jobs", {json}, true)) == 400);
  CHECK(status_of_answer(ask("POST", "/v1/jobs", {json}, false)) == 400);
  CHECK(status_of_answer(ask("POST", "/v1/jobs", {{"content-type", "text/plain"}}, true)) == 415);
  CHECK(status_of_answer(ask("POST", "/v1/jobs", {}, true)) == 415);
  CHECK(status_of_answer(ask("POST", "/v1/jobs", {json, {"content-encoding", "gzip"}}, true)) == 415);
  CHECK(status_of_answer(ask("POST", "/v1/jobs", {json, {"expect", "miracles"}}, true)) == 417);
  CHECK(status_of_answer(ask("POST", "/v1/jobs", {json, {"idempotency-key", "a"}, {"idempotency-key", "b"}}, true)) ==
        400);
  CHECK(status_of_answer(ask("POST", "/v1/jobs", {json, {"idempotency-key", ""}}, true)) == 400);
  CHECK(status_of_answer(ask("GET", "/v1/jobs", {{"authorization", "Bearer x"}})) == 400);
}

TEST_CASE("admit: a parameter of other routes is refused with its reason, another one with those that there are") {
  const auto detail_of = [](const std::string& target) {
    const auto decision = ask("GET", target);
    return std::get<Response>(decision).body;
  };
  CHECK(detail_of("/v1/prices?at=7").find("\"at: prices are those of now\"") != std::string::npos);
  CHECK(detail_of("/v1/prices?colour=red").find("takes no query parameters") != std::string::npos);
  CHECK(detail_of("/v1/jobs?colour=red").find("this route takes: ") != std::string::npos);
}

TEST_CASE("admit: only public routes go without a token, and unknown paths tell nothing") {
  CHECK(status_of_answer(ask("GET", "/health", {}, false, false)) == 200);
  CHECK(status_of_answer(ask("HEAD", "/health", {}, false, false)) == 200);
  for (const std::string_view target : {"/v1/jobs", "/v1/jobs/7", "/nowhere", "/health/x"}) {
    for (const std::string_view method : {"GET", "PUT", "OPTIONS", "DELETE"}) {
      CHECK(status_of_answer(ask(method, target, {}, false, false)) == 401);
    }
  }
}

TEST_CASE("admit: the refusal is a problem document with its place") {
  const auto decision = ask("PUT", "/v1/jobs/7?x=1");
  const Response& response = std::get<Response>(decision);
  CHECK(response.content_type == "application/problem+json");
  CHECK(response.body ==
        "{\"type\":\"urn:berth:problem:method-not-allowed\",\"title\":\"Method Not Allowed\",\"status\":405,"
        "\"detail\":\"this path serves: GET, HEAD, DELETE, OPTIONS\",\"code\":\"method-not-allowed\","
        "\"instance\":\"/v1/jobs/7\"}");
}

TEST_CASE("url: decoding refuses what is broken") {
  CHECK(*decode_segment("a%20b+c") == "a b+c");
  CHECK(decode_query("a=1&b=x+y&a=2")->count("a") == 2);
  CHECK(decode_query("a=1&b=x+y")->find("b")->second == "x y");
  for (const std::string_view text :
       {"%", "%2", "%2g", "%C3", "%C0%AF", "%ED%A0%80", "%F5%80%80%80", "%0a", "%7f", "%00"}) {
    CAPTURE(text);
    CHECK_FALSE(decode_segment(text));
    CHECK_FALSE(decode_query("q=" + std::string(text)));
  }
  CHECK(is_valid_utf8("\xf0\x9f\x98\x80 \xed\x9f\xbf \xef\xbf\xbf"));
}

TEST_CASE("openapi: the document has each route once, as it is served") {
  const Router router = sample_router();
  const auto document =
      openapi_document("berth", "0.1.0", router.routes(), {{"Job", boost::json::object{{"type", "object"}}}});
  CHECK(document.at("openapi").as_string() == "3.0.3");
  const auto& paths = document.at("paths").as_object();
  std::size_t operations = 0;
  for (const auto& path : paths) operations += path.value().as_object().size();
  CHECK(operations == router.routes().size());
  const auto& submit = document.at_pointer("/paths/~1v1~1jobs/post").as_object();
  CHECK(submit.at("operationId").as_string() == "submitJob");
  CHECK(submit.at("requestBody").at_pointer("/content/application~1json/schema/$ref").as_string() ==
        "#/components/schemas/Job");
  CHECK(submit.at("responses").as_object().contains("201"));
  CHECK(submit.at("responses").as_object().contains("401"));
  CHECK(submit.at("responses").at_pointer("/409/content/application~1problem+json/schema/$ref").as_string() ==
        "#/components/schemas/Problem");
  CHECK(document.at_pointer("/paths/~1health/get/security").as_array().empty());
  CHECK(document.at_pointer("/paths/~1v1~1jobs~1{id}/get/parameters/0/required").as_bool());
  const auto& limit = document.at_pointer("/paths/~1v1~1jobs/get/parameters/0/schema").as_object();
  CHECK(limit.at("minimum").as_int64() == 1);
  CHECK(limit.at("maximum").as_int64() == 1000);
  const auto pattern = [&](const char* at) { return document.at_pointer(at).as_string(); };
  CHECK(pattern("/paths/~1v1~1jobs~1{id}/get/parameters/0/schema/pattern") == "^[^\\u0000-\\u001f\\u007f]+$");
  CHECK(document.at_pointer("/components/schemas").as_object().contains("Problem"));
  CHECK(document.at_pointer("/components/securitySchemes/bearer/scheme").as_string() == "bearer");
}

TEST_CASE("openapi: a route that streams has its page first, and the schema of an item of the stream") {
  const auto document =
      openapi_document("berth", "0.1.0", sample_router().routes(), {{"Job", boost::json::object{{"type", "object"}}}});
  const auto& content = document.at_pointer("/paths/~1v1~1events/get/responses/200/content").as_object();
  CHECK(content.begin()->key() == "application/json");
  CHECK(content.at("text/event-stream").at_pointer("/schema/properties/data/type").as_string() == "string");
  CHECK(content.at("application/x-ndjson").at_pointer("/schema/$ref").as_string() == "#/components/schemas/Job");
}

}  // namespace
}  // namespace berth::http
