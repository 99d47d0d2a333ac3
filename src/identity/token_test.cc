#include "identity/token.h"

#include <doctest/doctest.h>

#include <string>

#include "identity/test_keys.h"

namespace berth::identity {
namespace {

std::string token_of(const std::string& header, const std::string& claims, const std::string& signature = "c2ln") {
  return test::base64url(header) + "." + test::base64url(claims) + "." + signature;
}
std::string refusal_of(const std::string& token) {
  const auto read = read_token(token);
  return read ? "" : read.error().message;
}
using test::mentions;

const std::string kHeader = R"({"alg":"RS256","kid":"k1"})";
const std::string kClaims = R"({"iss":"https://x"})";

TEST_CASE("token: header and claims are taken apart") {
  const auto token = read_token(token_of(kHeader, kClaims));
  REQUIRE_MESSAGE(token, token.error().message);
  CHECK_EQ(token->key_id, "k1");
  CHECK_EQ(token->issuer, "https://x");
  CHECK(token->algorithm == Algorithm::kRs256);
}

TEST_CASE("token: other algorithms than RS256 and ES256 are refused, however they are written") {
  for (const char* algorithm :
       {"none", "None", "NONE", "HS256", "HS512", "RS384", "PS256", "ES384", "EdDSA", "rs256", ""})
    CHECK(mentions(refusal_of(token_of(R"({"alg":")" + std::string(algorithm) + R"("})", kClaims)), "RS256 and ES256"));
  CHECK(mentions(refusal_of(token_of("{}", kClaims)), "RS256 and ES256"));
  CHECK(mentions(refusal_of(token_of(R"({"alg":["RS256"]})", kClaims)), "RS256 and ES256"));
  CHECK(mentions(refusal_of(token_of(kHeader, kClaims, "")), "no signature"));
}

TEST_CASE("token: what two readers could understand differently is refused") {
  CHECK(mentions(refusal_of(token_of(kHeader, R"({"iss":"https://x","sub":"a","sub":"b"})")), "twice"));
  CHECK(mentions(refusal_of(token_of(R"({"alg":"RS256","alg":"none"})", kClaims)), "twice"));
  CHECK(mentions(refusal_of(token_of(kHeader, R"({"iss":"https://x","a":{"b":1,"b":2}})")), "twice"));
  CHECK(mentions(refusal_of(token_of(kHeader, kClaims + "x")), "after the value"));
  CHECK(mentions(refusal_of(token_of(kHeader, "[]")), "no JSON object"));
  CHECK(mentions(refusal_of(token_of(kHeader, kClaims, "c2k=")), "base64url"));
  CHECK(mentions(refusal_of(token_of(kHeader, kClaims, "c2k\n")), "base64url"));
  CHECK(mentions(refusal_of(token_of(kHeader, kClaims, "c2lnx")), "impossible length"));
  CHECK(mentions(refusal_of(token_of(kHeader, kClaims, "c2k")), ""));
  CHECK(mentions(refusal_of(token_of(kHeader, kClaims, "c2l")), "left over"));
  CHECK(mentions(refusal_of("a.b"), "three parts"));
  CHECK(mentions(refusal_of("a.b.c.d.e"), "three parts"));
}

TEST_CASE("token: critical extensions, keys in the header and other types are refused") {
  for (const char* extra :
       {R"("crit":["exp"])", R"("jwk":{})", R"("jku":"https://evil")", R"("x5c":[])", R"("b64":false)",
        R"("typ":"logout+jwt")", R"("typ":7)", R"("kid":7)", R"("kid":"")", R"("kid":"a b")"})
    CHECK_MESSAGE(refusal_of(token_of(R"({"alg":"RS256",)" + std::string(extra) + "}", kClaims)) != "", extra);
  for (const char* type : {"JWT", "jwt", "at+jwt", "application/at+jwt"})
    CHECK_EQ(refusal_of(token_of(R"({"alg":"RS256","typ":")" + std::string(type) + R"("})", kClaims)), "");
}

TEST_CASE("token: size and depth are bounded") {
  CHECK(mentions(refusal_of(std::string(1024 * 1024, 'a')), "larger than 16384"));
  CHECK(
      mentions(refusal_of(token_of(kHeader, R"({"iss":"x","a":)" + std::string(20, '[') + std::string(20, ']') + "}")),
               "nested deeper"));
  CHECK(mentions(refusal_of(token_of(kHeader, "{}")), "issuer"));
}

}  // namespace
}  // namespace berth::identity
