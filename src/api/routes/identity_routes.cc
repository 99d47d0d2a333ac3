// Identities of jobs: the token that a running job gets for a service that verifies it, and what that service reads
// here without signing in, by OpenID Connect discovery.

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "api/job_identities.h"
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

constexpr std::size_t kLongestAudience = 255;

http::Response with_cache_control(http::Response response, const char* value) {
  response.headers.push_back({"Cache-Control", value});
  return response;
}

void get_provider(Service& service, const Responder& responder) {
  const std::string issuer = service.identities().issuer();
  const json::object answer{
      {"issuer", issuer},
      {"jwks_uri", issuer + "/v1/keys"},
      {"response_types_supported", json::array{"id_token"}},
      {"subject_types_supported", json::array{"public"}},
      {"id_token_signing_alg_values_supported", json::array{"RS256"}},
      {"claims_supported",
       {"iss", "sub", "aud", "iat", "nbf", "exp", "jti", "berth_queue", "berth_job", "berth_attempt", "berth_user"}}};
  responder.send(with_cache_control(json_answer(answer), "public, max-age=300"));
}

void get_keys(Service& service, const Responder& responder) {
  http::Response response;
  response.body = service.identities().key_set();
  responder.send(with_cache_control(std::move(response), "public, max-age=60"));
}

void rotate_keys(Service& service, const Request& request, const Responder& responder) {
  const auto key = service.identities().rotate(flag_of(request, "withdraw"), request.subject);
  if (!key) {
    responder.fail(key.error());
    return;
  }
  responder.send(json_answer(json::object{{"kid", *key}, {"withdrawn", flag_of(request, "withdraw")}}));
}

bool is_audience(const std::string& text) {
  return !text.empty() && text.size() <= kLongestAudience &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

void get_job_identity(Service& service, const Request& request, const Responder& responder) {
  const auto id = job_id_of(request);
  if (!id) {
    responder.fail(id.error());
    return;
  }
  const std::string audience = text_of(request, "audience");
  if (!is_audience(audience)) {
    responder.fail(
        invalid("audience: name the service that the token is for, such as https://vault.example.com, in 1 to " +
                std::to_string(kLongestAudience) + " visible ASCII characters"));
    return;
  }
  const auto token = service.identities().issue(*id, audience);
  if (!token) {
    responder.fail(token.error());
    return;
  }
  responder.send(with_cache_control(
      json_answer(json::object{{"token", token->text}, {"expires", to_iso8601(token->expires)}}), "no-store"));
}

}  // namespace

void add_identity_routes(http::Router& router, Service& service) {
  router.add({.method = Method::kGet,
              .pattern = "/.well-known/openid-configuration",
              .access = Access::kPublic,
              .doc = {.operation_id = "getProviderConfiguration",
                      .summary = "Where the keys are by which the identity of a job is verified (OpenID discovery).",
                      .responses = {{.status = 200, .description = "The document.", .schema = "ProviderConfiguration"}},
                      .tags = {"identity"}},
              .handler = [&service](const Request&, const Responder& to) { get_provider(service, to); }});
  router.add({.method = Method::kGet,
              .pattern = "/v1/keys",
              .access = Access::kPublic,
              .doc = {.operation_id = "listSigningKeys",
                      .summary = "The public keys that identities of jobs are signed with, as a JSON Web Key Set.",
                      .responses = {{.status = 200, .description = "The keys.", .schema = "SigningKeys"}},
                      .tags = {"identity"}},
              .handler = [&service](const Request&, const Responder& to) { get_keys(service, to); }});
  router.add(
      {.method = Method::kPost,
       .pattern = "/v1/keys/rotate",
       .access = Access::kToken,
       .threads = http::Threads::kReads,
       .doc = {.operation_id = "rotateSigningKeys",
               .summary = "Signs identities of jobs with a new key from now on.",
               .responses = {{.status = 200, .description = "The new key.", .schema = "KeyRotated"},
                             {.status = 409, .description = "There have been too many rotations in a short time."}},
               .description = "The earlier public key stays in the set until the tokens that it has signed have ended.",
               .tags = {"identity"},
               .parameters = {http::query_parameter("withdraw",
                                                    "The earlier keys leave the set at once: one of them is known.",
                                                    http::ParameterType::kBoolean)}},
       .handler = [&service](const Request& request, const Responder& to) { rotate_keys(service, request, to); }});
  http::ParameterDoc audience = http::query_parameter("audience", "The service that is to take the token (`aud`).");
  audience.required = true;
  audience.pattern = "^[!-~]{1,255}$";
  router.add(
      {.method = Method::kPost,
       .pattern = "/v1/jobs/{id}/identity",
       .access = Access::kToken,
       .threads = http::Threads::kReads,
       .doc = {.operation_id = "createJobIdentity",
               .summary = "A signed token by which a running job says to another service which job it is.",
               .responses = {{.status = 200, .description = "The token, good for minutes.", .schema = "JobIdentity"},
                             {.status = 400, .description = "The audience is missing, or no such text."},
                             {.status = 403, .description = "It is given to the job alone, by its own token."},
                             {.status = 404, .description = "There is no such job."},
                             {.status = 409, .description = "The job does not run."}},
               .tags = {"identity"},
               .parameters = {job_parameter(), audience}},
       .handler = [&service](const Request& request, const Responder& to) { get_job_identity(service, request, to); }});
}

}  // namespace berth::api
