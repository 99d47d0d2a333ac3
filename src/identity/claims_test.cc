#include "identity/claims.h"

#include <doctest/doctest.h>

#include <string>

#include "identity/test_keys.h"

namespace berth::identity {
namespace {

using test::claims;
using test::claims_with;
using test::kNow;
namespace json = boost::json;

std::string refusal_of(const json::object& of, Issuer issuer = test::issuer(), Timestamp now = kNow) {
  const auto identity = check_claims(of, issuer, now);
  return identity ? "" : identity.error().message;
}
json::object without(std::string_view name) {
  json::object changed = claims();
  changed.erase(name);
  return changed;
}
using test::mentions;

TEST_CASE("claims: names carry the issuer's") {
  const auto identity = check_claims(claims(), test::issuer(), kNow);
  REQUIRE_MESSAGE(identity, identity.error().message);
  CHECK_EQ(identity->user, "corp:ada");
  CHECK_EQ(identity->groups, std::vector<std::string>{"corp:nlp", "corp:vision"});
  CHECK_EQ(identity->issued->ms, kNow.ms - 5000);
  CHECK_EQ(identity->ends.ms, kNow.ms + 600'000 + 60'000);
}

TEST_CASE("claims: issuer and audience are compared letter by letter") {
  CHECK(mentions(refusal_of(claims_with("iss", "https://login.example.com/")), "another issuer"));
  CHECK(mentions(refusal_of(claims_with("aud", "berth2")), "another audience"));
  CHECK(mentions(refusal_of(claims_with("aud", json::array{"a", "b"})), "another audience"));
  CHECK(mentions(refusal_of(claims_with("aud", nullptr)), "another audience"));
  CHECK(mentions(refusal_of(without("aud")), "no audience"));
  CHECK_EQ(refusal_of(claims_with("aud", json::array{"a", "berth"})), "");
}

TEST_CASE("claims: a token is good from nbf to exp, give or take the clock skew") {
  const std::int64_t now_s = kNow.ms / 1000;
  CHECK_EQ(refusal_of(claims_with("exp", now_s - 59)), "");
  CHECK(mentions(refusal_of(claims_with("exp", now_s - 60)), "expired"));
  CHECK(mentions(refusal_of(claims_with("exp", "tomorrow")), "no time"));
  CHECK(mentions(refusal_of(claims_with("exp", 1e300)), "no time"));
  CHECK(mentions(refusal_of(claims_with("exp", -5)), "no time"));
  CHECK(mentions(refusal_of(without("exp")), "never ends"));
  CHECK_EQ(refusal_of(claims_with("exp", static_cast<double>(now_s) + 0.5)), "");
  CHECK_EQ(refusal_of(claims_with("nbf", now_s + 60)), "");
  CHECK(mentions(refusal_of(claims_with("nbf", now_s + 61)), "not good before"));
  CHECK(mentions(refusal_of(claims_with("iat", now_s + 61)), "in the future"));
}

TEST_CASE("claims: a name must be one") {
  for (const json::value& name : {json::value(""), json::value(7), json::value(nullptr), json::value(" ada"),
                                  json::value("a\nb"), json::value("a\xc2\x85"), json::value(std::string(190, 'a'))})
    CHECK(mentions(refusal_of(claims_with("sub", name)), "no name"));
  CHECK_EQ(refusal_of(claims_with("sub", "system:serviceaccount:team:train")), "");
  CHECK_EQ(refusal_of(claims_with("sub", "ad\xc3\xa9@example.com")), "");
  Issuer by_mail = test::issuer();
  by_mail.username_claim = "email";
  CHECK(mentions(refusal_of(claims(), by_mail), "`email` is no name"));
  json::object mail = claims_with("email", "ada@example.com");
  CHECK(mentions(refusal_of(mail, by_mail), "it has no `email_verified`"));
  mail["email_verified"] = true;
  CHECK_EQ(refusal_of(mail, by_mail), "");
  for (const json::value& not_true : {json::value(false), json::value("true"), json::value(nullptr)}) {
    mail["email_verified"] = not_true;
    CHECK(mentions(refusal_of(mail, by_mail), "not verified"));
  }
}

TEST_CASE("claims: groups are a list, one text, or absent; what cannot be bound is left out") {
  CHECK(mentions(refusal_of(claims_with("groups", 7)), "no list of groups"));
  CHECK_EQ(check_claims(claims_with("groups", "nlp"), test::issuer(), kNow)->groups,
           std::vector<std::string>{"corp:nlp"});
  CHECK(check_claims(without("groups"), test::issuer(), kNow)->groups.empty());
  const json::array odd{"b", 7, "", "a", "b", json::array{"c"}};
  CHECK_EQ(check_claims(claims_with("groups", odd), test::issuer(), kNow)->groups,
           std::vector<std::string>{"corp:a", "corp:b"});
}

}  // namespace
}  // namespace berth::identity
