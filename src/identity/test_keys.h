#pragma once
// Keys and tokens made in a test: what an issuer would sign, and what an attacker would.

#include <cjose/cjose.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/timestamp.h"
#include "identity/issuer.h"

namespace berth::identity::test {

namespace json = boost::json;

inline bool mentions(const std::string& text, std::string_view words) { return text.find(words) != std::string::npos; }

inline std::string base64url(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::string text;
  unsigned bits = 0;
  unsigned count = 0;
  for (const char c : bytes) {
    bits = (bits << 8U) | static_cast<unsigned char>(c);
    for (count += 8; count >= 6; count -= 6) text += kDigits[(bits >> (count - 6)) & 63U];
  }
  if (count > 0) text += kDigits[(bits << (6 - count)) & 63U];
  return text;
}

// A signing key of an issuer.
class SigningKey {
 public:
  static SigningKey rsa(const std::string& id, std::size_t bits = 2048) {
    const unsigned char exponent[] = {1, 0, 1};
    return {cjose_jwk_create_RSA_random(bits, exponent, sizeof exponent, nullptr), id, "RS256"};
  }
  static SigningKey ec(const std::string& id) {
    return {cjose_jwk_create_EC_random(CJOSE_JWK_EC_P_256, nullptr), id, "ES256"};
  }

  // As the issuer publishes it.
  json::object published() const {
    char* const text = cjose_jwk_to_json(key_.get(), false, nullptr);
    BERTH_CHECK(text != nullptr);
    json::object key = json::parse(text).as_object();
    std::free(text);
    key["kid"] = id_;
    return key;
  }

  // A header with `alg` and `kid`.
  json::object header() const { return {{"alg", algorithm_}, {"kid", id_}, {"typ", "JWT"}}; }

  std::string sign(const json::object& claims) const { return sign(header(), json::serialize(claims)); }
  std::string sign(const json::object& header, const std::string& payload) const {
    cjose_header_t* const protected_header = cjose_header_new(nullptr);
    for (const auto& [name, value] : header) {
      const std::string at(name);
      const json::string* text = value.if_string();
      const bool set =
          text != nullptr ? cjose_header_set(protected_header, at.c_str(), text->c_str(), nullptr)
                          : cjose_header_set_raw(protected_header, at.c_str(), json::serialize(value).c_str(), nullptr);
      BERTH_CHECK(set);
    }
    cjose_jws_t* const jws = cjose_jws_sign(
        key_.get(), protected_header, reinterpret_cast<const std::uint8_t*>(payload.data()), payload.size(), nullptr);
    BERTH_CHECK(jws != nullptr);
    const char* text = nullptr;
    const bool exported = cjose_jws_export(jws, &text, nullptr);
    BERTH_CHECK(exported);
    std::string token(text);
    cjose_jws_release(jws);
    cjose_header_release(protected_header);
    return token;
  }

 private:
  struct Release {
    void operator()(cjose_jwk_t* key) const { cjose_jwk_release(key); }
  };
  SigningKey(cjose_jwk_t* key, std::string id, const char* algorithm)
      : key_(key), id_(std::move(id)), algorithm_(algorithm) {
    BERTH_CHECK(key != nullptr);
  }
  std::unique_ptr<cjose_jwk_t, Release> key_;
  std::string id_;
  std::string algorithm_;
};

inline std::string key_set(std::initializer_list<const SigningKey*> keys) {
  json::array listed;
  for (const SigningKey* key : keys) listed.push_back(key->published());
  return json::serialize(json::object{{"keys", std::move(listed)}});
}

// Signed with a text as the secret key of an HMAC: what a careless server takes if the text is its public key.
inline std::string sign_hmac(const json::object& header, const json::object& claims, std::string_view secret) {
  const std::string input = base64url(json::serialize(header)) + "." + base64url(json::serialize(claims));
  unsigned char digest[SHA256_DIGEST_LENGTH];
  unsigned size = 0;
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
       reinterpret_cast<const unsigned char*>(input.data()), input.size(), digest, &size);
  return input + "." + base64url({reinterpret_cast<const char*>(digest), size});
}

inline Issuer issuer() {
  Issuer corp;
  corp.name = "corp";
  corp.url = "https://login.example.com";
  corp.audiences = {"berth"};
  return corp;
}

constexpr Timestamp kNow{1'800'000'000'000};

inline json::object claims() {
  return {{"iss", "https://login.example.com"},
          {"aud", "berth"},
          {"sub", "ada"},
          {"exp", 1'800'000'600},
          {"iat", 1'800'000'000 - 5},
          {"groups", {"nlp", "vision"}}};
}
inline json::object claims_with(std::string_view name, json::value value) {
  json::object changed = claims();
  changed[name] = std::move(value);
  return changed;
}

}  // namespace berth::identity::test
