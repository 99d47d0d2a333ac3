#include "identity/key_set.h"

#include <doctest/doctest.h>

#include <string>

#include "identity/test_keys.h"

namespace berth::identity {
namespace {

using test::claims;
using test::key_set;
using test::SigningKey;
namespace json = boost::json;

std::string refusal_of(const KeySet& keys, const std::string& text) {
  const auto token = read_token(text);
  if (!token) return token.error().message;
  const auto good = keys.check_signature(text, *token);
  return good ? "" : good.error().message;
}
using test::mentions;
std::string with(json::object key, std::string_view name, json::value value) {
  key[name] = std::move(value);
  return json::serialize(json::object{{"keys", json::array{std::move(key)}}});
}

TEST_CASE("key set: each of its keys checks what it signed, and nothing else") {
  const SigningKey rsa = SigningKey::rsa("r");
  const SigningKey ec = SigningKey::ec("e");
  const SigningKey other = SigningKey::rsa("r");  // the same name, another key
  const auto keys = KeySet::read(key_set({&rsa, &ec}));
  REQUIRE_MESSAGE(keys, keys.error().message);
  CHECK_EQ(keys->size(), 2);
  CHECK_EQ(refusal_of(*keys, rsa.sign(claims())), "");
  CHECK_EQ(refusal_of(*keys, ec.sign(claims())), "");
  CHECK(mentions(refusal_of(*keys, other.sign(claims())), "signature"));
  std::string changed = rsa.sign(claims());
  changed.replace(changed.find('.') + 1, changed.rfind('.') - changed.find('.') - 1,
                  test::base64url(json::serialize(test::claims_with("sub", "eve"))));
  CHECK(refusal_of(*keys, changed) != "");
  std::string cut = ec.sign(claims());
  cut.back() = cut.back() == 'A' ? 'Q' : 'A';
  CHECK(refusal_of(*keys, cut) != "");
}

TEST_CASE("key set: an HMAC with the public key as its secret is refused") {
  const SigningKey rsa = SigningKey::rsa("r");
  const auto keys = KeySet::read(key_set({&rsa}));
  for (const std::string& secret :
       {json::serialize(rsa.published()), std::string(rsa.published()["n"].as_string()), std::string()}) {
    for (const char* algorithm : {"HS256", "RS256"}) {
      json::object header = rsa.header();
      header["alg"] = algorithm;
      CHECK(refusal_of(*keys, test::sign_hmac(header, claims(), secret)) != "");
    }
  }
}

TEST_CASE("key set: unknown and path-like key names find nothing") {
  const SigningKey rsa = SigningKey::rsa("r");
  const SigningKey second = SigningKey::rsa("s");
  const auto keys = KeySet::read(key_set({&rsa, &second}));
  for (const char* id : {"x", "../../etc/passwd", "/dev/null", "r'--", "R", "r/../r"}) {
    json::object header = rsa.header();
    header["kid"] = id;
    CHECK(mentions(refusal_of(*keys, rsa.sign(header, json::serialize(claims()))), "does not list"));
  }
  json::object unnamed = rsa.header();
  unnamed.erase("kid");
  CHECK(mentions(refusal_of(*keys, rsa.sign(unnamed, json::serialize(claims()))), "does not list"));
  const auto single = KeySet::read(key_set({&rsa}));
  CHECK_EQ(refusal_of(*single, rsa.sign(unnamed, json::serialize(claims()))), "");
}

TEST_CASE("key set: keys that must not check signatures are left out") {
  const SigningKey rsa = SigningKey::rsa("r");
  CHECK(KeySet::read(with(rsa.published(), "use", "sig")));
  CHECK_FALSE(KeySet::read(with(rsa.published(), "use", "enc")));
  CHECK_FALSE(KeySet::read(with(rsa.published(), "alg", "HS256")));
  CHECK_FALSE(KeySet::read(with(rsa.published(), "alg", "RS512")));
  CHECK_FALSE(KeySet::read(with(rsa.published(), "key_ops", json::array{"encrypt"})));
  CHECK_FALSE(KeySet::read(with(rsa.published(), "n", "")));
  const SigningKey small = SigningKey::rsa("small", 1024);
  CHECK_FALSE(KeySet::read(key_set({&small})));
  CHECK_FALSE(KeySet::read(R"({"keys":[{"kty":"oct","kid":"o","k":"c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0"}]})"));
  const SigningKey same = SigningKey::rsa("r");
  CHECK_FALSE(KeySet::read(key_set({&rsa, &same})));
  for (const char* text : {"", "{}", "[]", R"({"keys":{}})", R"({"keys":[7]})", R"({"keys":[],"keys":[]})"})
    CHECK_FALSE(KeySet::read(text));
}

}  // namespace
}  // namespace berth::identity
