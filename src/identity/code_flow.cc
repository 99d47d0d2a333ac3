#include "identity/code_flow.h"

#include <openssl/evp.h>
#include <openssl/sha.h>

#include <array>

#include "identity/json_member.h"
#include "model/issuer_url.h"
#include "model/strict_json.h"

namespace berth::identity {
namespace {

namespace json = boost::json;

Result<std::string> endpoint_in(const json::object& document, const char* name) {
  std::string url = text_in(document, name);
  if (url.empty()) return invalid(std::string("its discovery document names no ") + name);
  if (const std::string flaw = flaw_of_issuer_url(url); !flaw.empty()) return invalid(std::string(name) + ": " + flaw);
  return url;
}

// At most 200 characters that a log line may have.
std::string plain(std::string_view text) {
  std::string said;
  for (const char c : text.substr(0, 200)) said += c >= ' ' && c < '\x7f' ? c : '?';
  return said;
}

std::string text_of(const json::value* value) {
  const json::string* text = value == nullptr ? nullptr : value->if_string();
  return text == nullptr ? std::string() : std::string(text->data(), text->size());
}

// OpenID Connect Core 1.0, section 3.1.3.7, points 3 to 5: no other program is meant as well.
Result<void> check_party(const json::object& claims, const std::string& client) {
  const json::value* party = claims.if_contains("azp");
  const json::value* audience = claims.if_contains("aud");
  const bool several = audience != nullptr && audience->is_array() && audience->get_array().size() > 1;
  if (party == nullptr && !several) return {};
  if (text_of(party) != client) return invalid("the ID token was made for another client (`azp`) than this page's");
  return {};
}

}  // namespace

Result<CodeEndpoints> read_code_endpoints(const json::object& document) {
  auto authorization = endpoint_in(document, "authorization_endpoint");
  if (!authorization) return authorization.error();
  if (authorization->find('#') != std::string::npos) return invalid("authorization_endpoint has a fragment");
  auto token = endpoint_in(document, "token_endpoint");
  if (!token) return token.error();
  CodeEndpoints endpoints{.authorization = std::move(*authorization), .token = std::move(*token)};
  const json::value* names = document.if_contains("authorization_response_iss_parameter_supported");
  endpoints.names_itself = names != nullptr && names->is_bool() && names->get_bool();
  return endpoints;
}

std::string form_encoded(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                       c == '_' || c == '.' || c == '~';
    const auto byte = static_cast<unsigned char>(c);
    if (plain) {
      encoded += c;
    } else {
      encoded += {'%', kDigits[byte >> 4U], kDigits[byte & 15U]};
    }
  }
  return encoded;
}

std::string encoded(const Form& form) {
  std::string text;
  for (const auto& [name, value] : form)
    text += (text.empty() ? "" : "&") + form_encoded(name) + "=" + form_encoded(value);
  return text;
}

std::string code_challenge(std::string_view verifier) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  SHA256(reinterpret_cast<const unsigned char*>(verifier.data()), verifier.size(), digest.data());
  std::array<unsigned char, 64> base64;
  const int size = EVP_EncodeBlock(base64.data(), digest.data(), static_cast<int>(digest.size()));
  std::string text(reinterpret_cast<const char*>(base64.data()), static_cast<std::size_t>(size));
  for (char& c : text) c = c == '+' ? '-' : c == '/' ? '_' : c;
  while (text.ends_with('=')) text.pop_back();
  return text;
}

std::string authorization_address(const CodeEndpoints& to, const PageClient& client, const CodeSecrets& secrets,
                                  const std::string& redirect_uri) {
  const Form query{{"response_type", "code"},
                   {"client_id", client.id},
                   {"redirect_uri", redirect_uri},
                   {"scope", client.scope},
                   {"state", secrets.state},
                   {"nonce", secrets.nonce},
                   {"code_challenge", code_challenge(secrets.verifier)},
                   {"code_challenge_method", "S256"}};
  return to.authorization + (to.authorization.find('?') == std::string::npos ? "?" : "&") + encoded(query);
}

namespace {

Form with_client(Form form, const PageClient& client) {
  if (client.secret.empty()) form.emplace_back("client_id", client.id);
  return form;
}

}  // namespace

Form code_form(const PageClient& client, const std::string& code, const std::string& verifier,
               const std::string& redirect_uri) {
  return with_client({{"grant_type", "authorization_code"},
                      {"code", code},
                      {"redirect_uri", redirect_uri},
                      {"code_verifier", verifier}},
                     client);
}

Form refresh_form(const PageClient& client, const std::string& refresh_token) {
  return with_client({{"grant_type", "refresh_token"}, {"refresh_token", refresh_token}}, client);
}

Result<IssuedTokens> read_issued(int status, std::string_view body) {
  const auto document = decode_json(body);
  const json::object* object = document ? document->if_object() : nullptr;
  if (status != 200) {
    const std::string error = object == nullptr ? std::string() : plain(text_in(*object, "error"));
    const std::string said =
        "its token endpoint answers " + std::to_string(status) + (error.empty() ? "" : ": " + error);
    return Error{error == "invalid_grant" ? ErrorCode::kDenied : ErrorCode::kUnavailable, said};
  }
  if (object == nullptr) return Error{ErrorCode::kUnavailable, "its token endpoint answers no JSON object"};
  IssuedTokens tokens{text_in(*object, "id_token"), text_in(*object, "refresh_token")};
  if (tokens.id_token.empty())
    return invalid("its token endpoint gave no ID token: `openid` has to be among the scopes of the page");
  return tokens;
}

Result<Identity> check_id_token(const json::object& claims, const Issuer& issuer, const std::string& nonce,
                                Timestamp now) {
  Issuer for_page = issuer;
  for_page.audiences = {issuer.page.id};
  auto identity = check_claims(claims, for_page, now);
  if (!identity) return identity;
  if (auto ok = check_party(claims, issuer.page.id); !ok) return ok.error();
  if (!nonce.empty() && text_in(claims, "nonce") != nonce)
    return invalid("the ID token answers another sign-in (`nonce`)");
  return identity;
}

}  // namespace berth::identity
