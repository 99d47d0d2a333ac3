#include "identity/token.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "identity/json_member.h"
#include "model/base64url.h"
#include "model/strict_json.h"

namespace berth::identity {
namespace {

namespace json = boost::json;

constexpr std::size_t kLongestKeyId = 256;
constexpr JsonLimits kClaimLimits{.bytes = kMostTokenBytes, .depth = 8};

Result<json::object> decode_object(std::string_view text, const char* part) {
  const auto bytes = decode_base64url(text);
  if (!bytes) return bytes.error();
  auto value = decode_json(*bytes, kClaimLimits);
  if (!value) return invalid(std::string("the ") + part + " of the token: " + value.error().message);
  if (!value->is_object()) return invalid(std::string("the ") + part + " of the token is no JSON object");
  return std::move(value->get_object());
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

// ID tokens and access tokens (RFC 9068); what an issuer signs for another use, such as logout+jwt, is no sign-in.
bool is_for_signing_in(const json::object& header) {
  if (!header.contains("typ")) return true;
  const json::string* type = string_in(header, "typ");
  if (type == nullptr) return false;
  const std::string word = lower_case({type->data(), type->size()});
  return word == "jwt" || word == "at+jwt" || word == "application/at+jwt";
}

Result<void> read_header(const json::object& header, UnprovedToken& token) {
  const json::string* algorithm = string_in(header, "alg");
  if (algorithm != nullptr && *algorithm == "RS256") {
    token.algorithm = Algorithm::kRs256;
  } else if (algorithm != nullptr && *algorithm == "ES256") {
    token.algorithm = Algorithm::kEs256;
  } else {
    return invalid("the token is signed by another algorithm than RS256 and ES256");
  }
  for (const char* refused : {"crit", "jku", "jwk", "x5u", "x5c", "b64", "zip", "enc"}) {
    if (header.contains(refused)) return invalid(std::string("the token's header has `") + refused + "`");
  }
  if (!is_for_signing_in(header)) return invalid("the token is of another type (`typ`) than JWT and at+jwt");
  if (!header.contains("kid")) return {};
  const json::string* key = string_in(header, "kid");
  const auto visible = [](char c) { return c > 0x20 && c < 0x7f; };
  if (key == nullptr || key->empty() || key->size() > kLongestKeyId || !std::all_of(key->begin(), key->end(), visible))
    return invalid("the token's key (`kid`) is no name of 1 to 256 visible characters");
  token.key_id.assign(key->data(), key->size());
  return {};
}

}  // namespace

bool looks_signed(std::string_view text) { return std::count(text.begin(), text.end(), '.') == 2; }

Result<UnprovedToken> read_token(std::string_view text) {
  if (text.size() > kMostTokenBytes)
    return Error{ErrorCode::kTooLarge, "the token is larger than " + std::to_string(kMostTokenBytes) + " bytes"};
  if (!looks_signed(text)) return invalid("the token has not three parts");
  const std::size_t first = text.find('.');
  const std::size_t second = text.find('.', first + 1);
  const auto header = decode_object(text.substr(0, first), "header");
  if (!header) return header.error();
  UnprovedToken token;
  if (auto ok = read_header(*header, token); !ok) return ok.error();
  const auto signature = decode_base64url(text.substr(second + 1));
  if (!signature) return signature.error();
  if (signature->empty()) return invalid("the token has no signature");
  if (token.algorithm == Algorithm::kEs256 && signature->size() != 64)
    return invalid("the token's signature has not the length of ES256");
  auto claims = decode_object(text.substr(first + 1, second - first - 1), "claims");
  if (!claims) return claims.error();
  token.claims = std::move(*claims);
  const json::string* issuer = string_in(token.claims, "iss");
  if (issuer == nullptr) return invalid("the token names no issuer (`iss`)");
  token.issuer.assign(issuer->data(), issuer->size());
  return token;
}

int fuzz_read_token(const unsigned char* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto token = read_token(text);
  if (!token) {
    BERTH_CHECK(!token.error().message.empty());
    return 0;
  }
  BERTH_CHECK(text.size() <= kMostTokenBytes);
  BERTH_CHECK(token->key_id.size() <= kLongestKeyId);
  BERTH_CHECK(token->claims.contains("iss"));
  return 0;
}

}  // namespace berth::identity
