// Tokens: each has a role at a queue. A token is shown once, when it is created; stored is its digest.

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "api/http/authenticator.h"
#include "api/routes/json_text.h"
#include "api/routes/request_reading.h"
#include "api/routes/route_groups.h"
#include "api/routes/views.h"
#include "model/json_fields.h"

namespace berth::api {
namespace {

namespace json = boost::json;
using http::Access;
using http::Method;
using http::Request;
using http::Responder;

// The body of a new token.
struct TokenRequest {
  std::string name;
  Role role = Role::kViewer;
  std::string queue;
  std::string user;  // the owner of the jobs that it submits; empty: the token's name
  std::int64_t expires_in_s = 0;
  static constexpr auto fields() {
    return field_list(field("name", &TokenRequest::name), field("role", &TokenRequest::role),
                      field("queue", &TokenRequest::queue), field("user", &TokenRequest::user),
                      field("expires_in_s", &TokenRequest::expires_in_s));
  }
};

constexpr std::int64_t kLongestTokenS = 366 * 86'400LL;

json::object token_view(const state::Token& token, const std::map<std::string, Timestamp>& uses, Timestamp now) {
  json::object view{{"name", token.name},
                    {"role", name_of(token.role)},
                    {"queue", token.queue},
                    {"user", token.as_user},
                    {"created", to_iso8601(token.created)},
                    {"created_by", token.user},
                    {"expires", to_iso8601(token.expires)},
                    {"expired", token.expires <= now}};
  if (const auto used = uses.find(token.digest); used != uses.end()) view["last_used"] = to_iso8601(used->second);
  return view;
}

void list_tokens(Service& service, const Responder& responder) {
  json::array items;
  Seq seq = 0;
  const std::map<std::string, Timestamp> uses = service.token_uses();
  service.read([&](const View& view) {
    for (const auto& [name, token] : view.state.tokens()) items.push_back(token_view(token, uses, view.now));
    seq = view.state.last_seq();
  });
  responder.send(json_answer(json::object{{"items", std::move(items)}, {"seq", seq}}));
}

Result<TokenCreated> token_of(const Request& request, Timestamp now) {
  const auto body = object_of(request);
  if (!body) return body.error();
  auto asked = from_json<TokenRequest>(*body);
  if (!asked) return asked.error();
  if (asked->expires_in_s < 1 || asked->expires_in_s > kLongestTokenS)
    return invalid("expires_in_s: give 1 to " + std::to_string(kLongestTokenS) + " seconds (366 days)");
  TokenCreated token;
  token.name = asked->name;
  token.role = asked->role;
  token.queue = asked->queue;
  token.as_user = asked->user.empty() ? asked->name : asked->user;
  token.expires = now + asked->expires_in_s * 1000;
  token.user = request.subject;
  return token;
}

void create_token(Service& service, const Request& request, const Responder& responder) {
  auto token = token_of(request, service.facts().clock.time);
  if (!token) {
    responder.fail(token.error());
    return;
  }
  const auto secret = http::random_token();
  if (!secret) {
    responder.fail(secret.error());
    return;
  }
  token->digest = http::text_of(http::digest_of(*secret));
  json::object answer{{"name", token->name},    {"role", name_of(token->role)},          {"queue", token->queue},
                      {"user", token->as_user}, {"expires", to_iso8601(token->expires)}, {"token", *secret}};
  service.submit(origin_of(request), CreateToken{std::move(*token)},
                 [responder, answer](const Result<control::Reply>& reply) {
                   if (reply) {
                     responder.send(json_answer(answer, 201));
                   } else {
                     responder.fail(reply.error());
                   }
                 });
}

void revoke_token(Service& service, const Request& request, const Responder& responder) {
  const std::string& name = request.path_params.at("name");
  service.submit(origin_of(request), RevokeToken{name, request.subject},
                 [responder, name](const Result<control::Reply>& reply) {
                   if (reply) {
                     responder.send(json_answer(json::object{{"name", name}, {"revoked", true}}));
                   } else {
                     responder.fail(reply.error());
                   }
                 });
}

void get_identity(const Request& request, const Responder& responder) {
  json::array roles;
  for (const RoleBinding& binding : request.principal.roles)
    roles.push_back(json::object{{"role", name_of(binding.role)}, {"queue", binding.queue}});
  responder.send(json_answer(json::object{{"subject", request.principal.name},
                                          {"user", request.principal.user},
                                          {"authenticated_by", request.principal.proof},
                                          {"connection", http::name_of(request.carrier)},
                                          {"roles", std::move(roles)}}));
}

}  // namespace

void add_token_routes(http::Router& router, Service& service) {
  router.add({.method = Method::kGet,
              .pattern = "/v1/identity",
              .access = Access::kToken,
              .doc = {.operation_id = "getIdentity",
                      .summary = "Who the server takes you for, and your roles.",
                      .responses = {{.status = 200, .description = "The subject.", .schema = "Identity"}},
                      .tags = {"access"}},
              .handler = [](const Request& request, const Responder& to) { get_identity(request, to); }});
  router.add({.method = Method::kGet,
              .pattern = "/v1/tokens",
              .access = Access::kToken,
              .threads = http::Threads::kReads,
              .doc = {.operation_id = "listTokens",
                      .summary = "Tokens that are not revoked, by name.",
                      .responses = {{.status = 200, .description = "The tokens.", .schema = "TokenList"}},
                      .tags = {"access"}},
              .handler = [&service](const Request&, const Responder& to) { list_tokens(service, to); }});
  router.add(
      {.method = Method::kPost,
       .pattern = "/v1/tokens",
       .access = Access::kToken,
       .doc = {.operation_id = "createToken",
               .summary = "Creates a token that has a role at a queue and at all queues below it.",
               .responses = {{.status = 201, .description = "The token, shown this once.", .schema = "TokenSecret"},
                             {.status = 400, .description = "The request breaks a rule."},
                             {.status = 404, .description = "There is no such queue."},
                             {.status = 409, .description = "There is a token of this name already."}},
               .tags = {"access"},
               .request_schema = "TokenRequest"},
       .handler = [&service](const Request& request, const Responder& to) { create_token(service, request, to); }});
  router.add(
      {.method = Method::kDelete,
       .pattern = "/v1/tokens/{name}",
       .access = Access::kToken,
       .doc = {.operation_id = "revokeToken",
               .summary = "Revokes a token; it is good for nothing from now on.",
               .responses = {{.status = 200, .description = "Done.", .schema = "TokenRevoked"},
                             {.status = 404, .description = "There is no such token."},
                             {.status = 409, .description = "Nobody could administer without it."}},
               .tags = {"access"},
               .parameters = {http::path_parameter("name", "The token's name.")}},
       .handler = [&service](const Request& request, const Responder& to) { revoke_token(service, request, to); }});
}

}  // namespace berth::api
