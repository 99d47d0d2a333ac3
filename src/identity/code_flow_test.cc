#include "identity/code_flow.h"

#include <doctest/doctest.h>

#include <boost/json/parse.hpp>

namespace berth::identity {
namespace {

namespace json = boost::json;

json::object object(const char* text) { return json::parse(text).as_object(); }

Issuer corp() {
  Issuer issuer;
  issuer.name = "corp";
  issuer.url = "https://login.example.com";
  issuer.audiences = {"berth"};
  issuer.clock_skew_s = 0;
  issuer.page.id = "page";
  issuer.page.scope = "openid groups";
  return issuer;
}

json::object claims(const char* more) {
  json::object all =
      object(R"({"iss": "https://login.example.com", "aud": "page", "sub": "ada", "exp": 100, "nonce": "n1"})");
  for (const auto& [name, value] : object(more)) all.insert_or_assign(name, value);
  return all;
}

std::string flaw(const char* more, const std::string& nonce = "n1") {
  const auto identity = check_id_token(claims(more), corp(), nonce, Timestamp{50'000});
  return identity ? "" : identity.error().message;
}

}  // namespace

TEST_CASE("the code flow: the challenge is that of RFC 7636, appendix B") {
  CHECK_EQ(code_challenge("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"),
           "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
}

TEST_CASE("the code flow: what is said to the issuer is encoded, and nothing of it is a secret of the sign-in") {
  const CodeEndpoints to{.authorization = "https://login.example.com/auth", .token = "https://login.example.com/token"};
  const std::string address =
      authorization_address(to, corp().page, {"s1", "n1", "v1"}, "https://berth.example.com/sign-in/answer");
  CHECK_EQ(address.find("https://login.example.com/auth?response_type=code&client_id=page&"), 0);
  CHECK_NE(address.find("&redirect_uri=https%3A%2F%2Fberth.example.com%2Fsign-in%2Fanswer&"), std::string::npos);
  CHECK_NE(address.find("&state=s1&nonce=n1&code_challenge="), std::string::npos);
  CHECK_NE(address.find("&code_challenge_method=S256"), std::string::npos);
  CHECK_EQ(address.find("v1"), std::string::npos);
}

TEST_CASE("the code flow: a public client names itself in the form, one with a secret does not") {
  PageClient page = corp().page;
  CHECK_NE(encoded(code_form(page, "c", "v", "r")).find("client_id=page"), std::string::npos);
  page.secret = "not-a-real-secret";
  CHECK_EQ(encoded(code_form(page, "c", "v", "r")),
           "grant_type=authorization_code&code=c&redirect_uri=r&code_verifier=v");
}

TEST_CASE("the code flow: an ID token is for the page alone, and answers this sign-in") {
  CHECK_EQ(flaw("{}"), "");
  CHECK_EQ(flaw(R"({"azp": "page", "aud": ["page", "other"]})"), "");
  CHECK_EQ(flaw(R"({"nonce": "n2"})", ""), "");  // by a refresh token
  for (const char* wrong : {R"({"nonce": "n2"})", R"({"nonce": null})", R"({"aud": "berth"})", R"({"azp": "other"})",
                            R"({"aud": ["page", "other"]})", R"({"exp": 1})", R"({"iss": "https://other"})"}) {
    CAPTURE(wrong);
    CHECK_NE(flaw(wrong), "");
  }
}

TEST_CASE("the code flow: a refusal differs from an issuer that does not answer as it should") {
  CHECK_EQ(read_issued(400, R"({"error": "invalid_grant"})").error().code, ErrorCode::kDenied);
  CHECK_EQ(read_issued(500, "<html>").error().code, ErrorCode::kUnavailable);
  CHECK_EQ(read_issued(200, R"({"access_token": "x"})").error().code, ErrorCode::kInvalid);
  const auto issued = read_issued(200, R"({"id_token": "a.b.c", "refresh_token": "r"})");
  REQUIRE(issued);
  CHECK_EQ(issued->id_token, "a.b.c");
  CHECK_EQ(issued->refresh_token, "r");
}

TEST_CASE("the code flow: endpoints without TLS are refused") {
  CHECK(read_code_endpoints(object(R"({"authorization_endpoint": "https://a/x", "token_endpoint": "https://a/t"})")));
  CHECK_FALSE(
      read_code_endpoints(object(R"({"authorization_endpoint": "http://a/x", "token_endpoint": "https://a/t"})")));
  CHECK_FALSE(
      read_code_endpoints(object(R"({"authorization_endpoint": "javascript:x", "token_endpoint": "https://a/t"})")));
  CHECK_FALSE(read_code_endpoints(object(R"({"token_endpoint": "https://a/t"})")));
}

}  // namespace berth::identity
