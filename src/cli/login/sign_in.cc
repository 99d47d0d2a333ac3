#include "cli/login/sign_in.h"

#include <algorithm>
#include <boost/json/object.hpp>
#include <chrono>
#include <thread>

#include "cli/connection.h"
#include "cli/login/form_post.h"
#include "model/base64url.h"
#include "model/issuer_url.h"
#include "model/strict_json.h"

namespace berth::cli {
namespace {

using Fields = std::vector<std::pair<std::string, std::string>>;
namespace json = boost::json;

constexpr std::int64_t kDefaultIntervalS = 5;
constexpr std::int64_t kSlowDownS = 5;
constexpr std::int64_t kLongestIntervalS = 60;
constexpr std::int64_t kRenewBeforeS = 30;
constexpr std::size_t kLongestSecret = 4096;

std::string member_text(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  const json::string* text = value == nullptr ? nullptr : value->if_string();
  return text == nullptr ? std::string() : std::string(text->data(), text->size());
}

std::int64_t member_number(const json::object& object, std::string_view name, std::int64_t otherwise) {
  const json::value* value = object.if_contains(name);
  if (value == nullptr || !value->is_int64()) return otherwise;
  return std::clamp<std::int64_t>(value->get_int64(), 0, 1'000'000'000'000);
}

Result<json::object> object_in(const std::string& url, const ProviderReply& reply) {
  auto value = decode_json(reply.body);
  if (!value || !value->is_object())
    return Error{ErrorCode::kUnavailable, url + " answers " + std::to_string(reply.status) + ", and no JSON object"};
  return std::move(value->get_object());
}

ProviderLine line_of(const Context& context) { return {.ca_file = context.issuer_ca}; }

// What the provider's discovery document says.
Result<json::object> discover(const Context& context) {
  std::string base = context.issuer;
  if (base.ends_with('/')) base.pop_back();
  const std::string url = base + "/.well-known/openid-configuration";
  const auto reply = get_document(url, line_of(context));
  if (!reply) return reply.error();
  if (reply->status != 200) return Error{ErrorCode::kUnavailable, url + " answers " + std::to_string(reply->status)};
  auto document = object_in(url, *reply);
  if (!document) return document.error();
  if (member_text(*document, "issuer") != context.issuer)
    return invalid(url + " is the document of another issuer than " + context.issuer + " (letter by letter)");
  return document;
}

Result<std::string> endpoint(const json::object& document, const char* name, const char* what) {
  std::string url = member_text(document, name);
  if (url.empty()) return Error{ErrorCode::kUnsupported, std::string("this provider has no ") + what};
  return url;
}

// What the provider says when it refuses, such as invalid_client: unknown client.
std::string refusal_in(const json::object& answer) {
  const std::string description = member_text(answer, "error_description");
  return member_text(answer, "error") + (description.empty() ? "" : ": " + description);
}

Result<std::int64_t> expiry_of(const std::string& token) {
  const std::size_t first = token.find('.');
  const std::size_t second = token.find('.', first + 1);
  if (first == std::string::npos || second == std::string::npos)
    return Error{ErrorCode::kUnsupported,
                 "the provider gave a token that no other server can verify; name the server's audience by --resource "
                 "or --audience, or have the provider issue JWT access tokens"};
  const auto claims = decode_base64url(std::string_view(token).substr(first + 1, second - first - 1));
  const auto value = claims ? decode_json(*claims) : Result<json::value>(claims.error());
  if (!value || !value->is_object()) return invalid("the provider gave a token whose claims cannot be read");
  return member_number(value->get_object(), "exp", 0);
}

// Takes the tokens of a good answer over. For a resource of its own the access token serves, else the ID token.
Result<Context> with_tokens(Context context, const json::object& answer) {
  const bool wants_access = !context.resource.empty() || !context.audience.empty();
  std::string token = wants_access ? std::string() : member_text(answer, "id_token");
  if (token.empty()) token = member_text(answer, "access_token");
  if (token.empty()) return invalid("the provider's answer has no token");
  const auto expires = expiry_of(token);
  if (!expires) return expires.error();
  context.token = std::move(token);
  context.expires_s = *expires;
  if (std::string refresh = member_text(answer, "refresh_token"); !refresh.empty())
    context.refresh_token = std::move(refresh);
  return context;
}

Fields wanted(const Context& context) {
  return {{"client_id", context.client_id},
          {"scope", context.scope},
          {"resource", context.resource},
          {"audience", context.audience}};
}

// Asks the token endpoint until the user has answered, as RFC 8628, section 3.5 says.
Result<Context> poll(const Context& context, const std::string& url, const json::object& device) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::seconds(member_number(device, "expires_in", 600));
  std::int64_t interval = std::max<std::int64_t>(1, member_number(device, "interval", kDefaultIntervalS));
  const Fields fields{{"grant_type", "urn:ietf:params:oauth:grant-type:device_code"},
                      {"device_code", member_text(device, "device_code")},
                      {"client_id", context.client_id},
                      {"resource", context.resource}};
  while (true) {
    std::this_thread::sleep_for(std::chrono::seconds(interval));
    if (Clock::now() >= end) break;
    const auto reply = post_form(url, fields, line_of(context));
    if (!reply) {  // asked less often when it does not answer
      interval = std::min(2 * interval, kLongestIntervalS);
      continue;
    }
    const auto answer = object_in(url, *reply);
    if (!answer) return answer.error();
    if (reply->status == 200) return with_tokens(context, *answer);
    const std::string error = member_text(*answer, "error");
    if (error == "slow_down") interval += kSlowDownS;
    if (error == "expired_token") break;
    if (error == "access_denied") return Error{ErrorCode::kDenied, "the sign-in was refused in the browser"};
    if (error != "authorization_pending" && error != "slow_down")
      return Error{ErrorCode::kDenied, "the provider refuses: " + refusal_in(*answer)};
  }
  return Error{ErrorCode::kUnavailable, "the code has expired; run `berth login` again"};
}

// One request to the token endpoint.
Result<Context> ask_for_tokens(const Context& context, const Fields& fields, const ProviderLine& line) {
  const auto document = discover(context);
  if (!document) return document.error();
  const auto url = endpoint(*document, "token_endpoint", "token endpoint");
  if (!url) return url.error();
  const auto reply = post_form(*url, fields, line);
  if (!reply) return reply.error();
  const auto answer = object_in(*url, *reply);
  if (!answer) return answer.error();
  if (reply->status != 200) return Error{ErrorCode::kDenied, "the provider refuses: " + refusal_in(*answer)};
  return with_tokens(context, *answer);
}

}  // namespace

Result<Context> sign_in_by_device(Context context, const std::function<void(const DevicePrompt&)>& show) {
  const auto document = discover(context);
  if (!document) return document.error();
  const auto url = endpoint(*document, "device_authorization_endpoint", "device flow; use --client-credentials");
  if (!url) return url.error();
  const auto token_url = endpoint(*document, "token_endpoint", "token endpoint");
  if (!token_url) return token_url.error();
  Fields fields = wanted(context);
  // A provider may want to hear that access lasts longer than the user is there.
  if (context.scope.find("offline_access") != std::string::npos) fields.emplace_back("prompt", "consent");
  const auto reply = post_form(*url, fields, line_of(context));
  if (!reply) return reply.error();
  const auto device = object_in(*url, *reply);
  if (!device) return device.error();
  if (reply->status != 200) return Error{ErrorCode::kDenied, "the provider refuses: " + refusal_in(*device)};
  DevicePrompt prompt{.url = member_text(*device, "verification_uri"),
                      .code = member_text(*device, "user_code"),
                      .full_url = member_text(*device, "verification_uri_complete"),
                      .expires_in_s = member_number(*device, "expires_in", 600)};
  if (prompt.url.empty()) prompt.url = member_text(*device, "verification_url");  // of older providers
  if (prompt.url.empty() || prompt.code.empty()) return invalid(*url + " gives no code");
  show(prompt);
  return poll(context, *token_url, *device);
}

Result<Context> sign_in_as_client(Context context, const std::string& secret) {
  Fields fields = wanted(context);
  fields.erase(fields.begin());  // the client is named by HTTP Basic
  fields.emplace_back("grant_type", "client_credentials");
  ProviderLine line = line_of(context);
  line.user = context.client_id;
  line.password = secret;
  return ask_for_tokens(context, fields, line);
}

Result<std::string> client_secret(const Context& context, const Environment& environment) {
  if (!context.secret_file.empty()) {
    auto text = read_file(context.secret_file, kLongestSecret);
    if (!text) return text.error();
    while (!text->empty() && (text->back() == '\n' || text->back() == '\r')) text->pop_back();
    if (text->empty()) return invalid(context.secret_file + " is empty");
    return text;
  }
  std::string secret = environment("BERTH_CLIENT_SECRET");
  if (secret.empty())
    return invalid("the client's secret is missing: give --client-secret-file FILE or set BERTH_CLIENT_SECRET");
  return secret;
}

bool is_ending(const Context& context, std::int64_t now_s) { return context.expires_s <= now_s + kRenewBeforeS; }

Result<Context> renewed(Context context, const Environment& environment) {
  if (context.grant == "client-credentials") {
    const auto secret = client_secret(context, environment);
    return secret ? sign_in_as_client(std::move(context), *secret) : Result<Context>(secret.error());
  }
  if (context.refresh_token.empty())
    return Error{ErrorCode::kDenied, "your sign-in at " + context.issuer + " has ended; run `berth login`"};
  const Fields fields{{"grant_type", "refresh_token"},
                      {"refresh_token", context.refresh_token},
                      {"client_id", context.client_id},
                      {"resource", context.resource}};
  auto fresh = ask_for_tokens(context, fields, line_of(context));
  if (!fresh && fresh.error().code == ErrorCode::kDenied)
    return Error{ErrorCode::kDenied,
                 "your sign-in at " + context.issuer + " has ended (" + fresh.error().message + "); run `berth login`"};
  return fresh;
}

void forget_at_provider(const Context& context) {
  if (context.issuer.empty() || context.refresh_token.empty()) return;
  const auto document = discover(context);
  if (!document) return;
  const auto url = endpoint(*document, "revocation_endpoint", "revocation");
  if (!url) return;
  static_cast<void>(post_form(
      *url, {{"token", context.refresh_token}, {"token_type_hint", "refresh_token"}, {"client_id", context.client_id}},
      line_of(context)));
}

}  // namespace berth::cli
