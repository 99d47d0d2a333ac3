#include "api/page/sign_in_routes.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "api/http/cookie.h"
#include "api/http/problem.h"

namespace berth::api {
namespace {

namespace json = boost::json;
using http::Access;
using http::Header;
using http::Method;
using http::ParameterDoc;
using http::query_parameter;
using http::Request;
using http::Responder;
using http::Response;

constexpr int kSignInSeconds = 600;

Response answer_json(const json::object& body) {
  return {.status = 200, .headers = {{"Cache-Control", "no-store"}}, .body = json::serialize(body) + "\n"};
}

// `seconds`: how long the browser keeps it; 0: not at all; nothing: until it is closed.
Header set_cookie(std::string_view name, std::string_view value, bool secure, std::string_view same_site,
                  std::optional<int> seconds) {
  std::string text = std::string(name) + "=" + std::string(value) +
                     "; Path=/; HttpOnly; SameSite=" + std::string(same_site) + (secure ? "; Secure" : "");
  if (seconds) text += "; Max-Age=" + std::to_string(*seconds);
  return {"Set-Cookie", text};
}

Response go_to(const std::string& address, std::vector<Header> headers) {
  headers.push_back({"Location", address});
  headers.push_back({"Cache-Control", "no-store"});
  headers.push_back({"Referrer-Policy", "no-referrer"});
  return {.status = 303, .content_type = {}, .headers = std::move(headers), .body = {}};
}

// Back to the page, which has a sentence for the word.
std::string failed_address(const std::string& word) { return "/#/sign-in?failed=" + word; }

void begin(SignIn& sign_in, const Request& request, const Responder& to) {
  sign_in.begin(*request.query_value("issuer"),
                [to, secure = sign_in.secure(), name = sign_in_cookie(sign_in)](const SignIn::Begun& begun) {
                  if (!begun.failure.empty()) {
                    to.send(go_to(failed_address(begun.failure), {}));
                    return;
                  }
                  // Lax: the browser comes back from the issuer's site.
                  to.send(go_to(begun.address, {set_cookie(name, begun.secret, secure, "Lax", kSignInSeconds)}));
                });
}

void finish(SignIn& sign_in, const Request& request, const Responder& to) {
  const bool secure = sign_in.secure();
  const auto value = [&](const char* name) { return request.query_value(name).value_or(""); };
  SignIn::Answered answered{
      .secret = std::string(http::cookie_named(request.header("cookie"), sign_in_cookie(sign_in))),
      .state = value("state"),
      .code = value("code"),
      .issuer = value("iss"),
      .error = value("error"),
  };
  sign_in.finish(std::move(answered), [to, secure, kept = sign_in_cookie(sign_in),
                                       session = session_cookie(sign_in)](const SignIn::Finished& finished) {
    std::vector<Header> headers{set_cookie(kept, "", secure, "Lax", 0)};
    if (!finished.failure.empty()) {
      to.send(go_to(failed_address(finished.failure), std::move(headers)));
      return;
    }
    headers.push_back(set_cookie(session, finished.session, secure, "Strict", std::nullopt));
    to.send(go_to("/", std::move(headers)));
  });
}

std::string_view session_of(const SignIn& sign_in, const Request& request) {
  return http::cookie_named(request.header("cookie"), session_cookie(sign_in));
}

void get_session(SignIn& sign_in, const Request& request, const Responder& to) {
  const auto token = sign_in.change_token(session_of(sign_in, request));
  json::array names;
  for (const std::string& name : sign_in.issuers()) names.emplace_back(name);
  json::object body{{"issuers", std::move(names)}};
  body["change_token"] = token ? json::value(*token) : json::value(nullptr);
  to.send(answer_json(body));
}

void end(SignIn& sign_in, const Request& request, const Responder& to) {
  const bool secure = sign_in.secure();
  if (!sign_in.end(session_of(sign_in, request), request.header("x-berth-change"))) {
    to.send(http::problem(403, "change-token", "X-Berth-Change has to be the change token of the session"));
    return;
  }
  to.send({.status = 204,
           .content_type = {},
           .headers = {set_cookie(session_cookie(sign_in), "", secure, "Strict", 0)},
           .body = {}});
}

// What issuers put beside the code. What is not named here would be refused.
std::vector<ParameterDoc> answer_parameters() {
  std::vector<ParameterDoc> all;
  for (const char* name : {"state", "code", "iss", "error", "error_description", "error_uri", "session_state", "scope",
                           "authuser", "hd", "prompt", "client_info"})
    all.push_back(query_parameter(name, "Of the issuer."));
  return all;
}

using Serve = void (*)(SignIn&, const Request&, const Responder&);

http::Route route(SignIn& sign_in, Method method, const char* pattern, http::RouteDoc doc, Serve serve) {
  doc.tags = {"page"};
  return {.method = method,
          .pattern = pattern,
          .access = Access::kPublic,
          .doc = std::move(doc),
          .handler = [&sign_in, serve](const Request& request, const Responder& to) { serve(sign_in, request, to); }};
}

}  // namespace

std::string session_cookie(const SignIn& sign_in) {
  return sign_in.secure() ? "__Host-berth-session" : "berth-session-" + sign_in.port();
}

std::string sign_in_cookie(const SignIn& sign_in) {
  return sign_in.secure() ? "__Host-berth-sign-in" : "berth-sign-in-" + sign_in.port();
}

void add_sign_in_routes(http::Router& router, SignIn& sign_in) {
  const std::vector<http::ResponseDoc> json_body{
      {.status = 200, .description = "The answer.", .schema = {}, .content_type = "application/json"}};
  const std::vector<http::ResponseDoc> redirect{{.status = 303, .description = "Where the browser goes."}};
  ParameterDoc issuer = query_parameter("issuer", "The name of the issuer.");
  issuer.required = true;
  router.add(route(sign_in, Method::kGet, "/sign-in/begin",
                   {.operation_id = "beginSignIn",
                    .summary = "Sends the browser to an issuer.",
                    .responses = redirect,
                    .parameters = {issuer}},
                   &begin));
  router.add(route(sign_in, Method::kGet, "/sign-in/answer",
                   {.operation_id = "finishSignIn",
                    .summary = "Where an issuer sends the browser.",
                    .responses = redirect,
                    .parameters = answer_parameters()},
                   &finish));
  router.add(route(sign_in, Method::kGet, "/sign-in/session",
                   {.operation_id = "getSignInSession",
                    .summary = "By which issuers one can sign in, and what a change by this session has to carry.",
                    .responses = json_body},
                   &get_session));
  router.add(route(sign_in, Method::kPost, "/sign-in/out",
                   {.operation_id = "signOut",
                    .summary = "Ends the session.",
                    .responses = {{.status = 204, .description = "It has ended."}}},
                   &end));
}

}  // namespace berth::api
