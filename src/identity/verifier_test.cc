#include "identity/verifier.h"

#include <doctest/doctest.h>

#include <chrono>
#include <future>
#include <string>

#include "identity/discovery.h"
#include "identity/test_keys.h"

namespace berth::identity {
namespace {

using test::claims;
using test::claims_with;
using test::kNow;
using test::SigningKey;

// An issuer whose keys the test changes, and a clock that the test moves.
struct World {
  std::mutex mutex;
  std::string keys;
  std::atomic<bool> away = false;
  std::atomic<int> loads = 0;
  std::atomic<std::int64_t> now_ms = kNow.ms;

  void publish(std::initializer_list<const SigningKey*> of) {
    const std::lock_guard lock(mutex);
    keys = test::key_set(of);
  }
  std::unique_ptr<Verifier> verifier() {
    return std::make_unique<Verifier>(
        std::vector<Issuer>{test::issuer()}, [this] { return Timestamp{now_ms}; },
        [this](const Issuer& issuer, const std::atomic<bool>&) {
          return load_keys(issuer, [this](const std::string& url) { return answer(url); });
        });
  }
  Result<std::string> answer(const std::string& url) {
    if (away) return Error{ErrorCode::kUnavailable, "away"};
    if (url.ends_with("/.well-known/openid-configuration"))
      return std::string(R"({"issuer":"https://login.example.com","jwks_uri":"https://login.example.com/keys"})");
    ++loads;
    const std::lock_guard lock(mutex);
    return keys;
  }
};

// Asks as a connection does: again after each fetch for which it is told to wait.
Verdict settled(Verifier& verifier, const std::string& token, Timestamp now) {
  for (int round = 0; round < 5; ++round) {
    Verdict verdict = verifier.verify(token, token, now);
    if (!verdict.fetching) return verdict;
    std::promise<void> fetched;
    verifier.when_fetched(*verdict.fetching, [&] { fetched.set_value(); });
    REQUIRE(fetched.get_future().wait_for(std::chrono::seconds(10)) == std::future_status::ready);
  }
  return {.refusal = "never settled"};
}
using test::mentions;

TEST_CASE("verifier: a good token is its bearer's; hostile ones are refused with what is wrong") {
  const SigningKey key = SigningKey::rsa("k");
  const SigningKey stranger = SigningKey::rsa("k");
  World world;
  world.publish({&key});
  const auto verifier = world.verifier();
  CHECK_EQ(settled(*verifier, key.sign(claims()), kNow).identity->user, "corp:ada");
  const auto refused = [&](const std::string& token) { return settled(*verifier, token, kNow).refusal; };
  CHECK(mentions(refused(stranger.sign(claims())), "signature"));
  CHECK(mentions(refused(key.sign(claims_with("iss", "https://evil.example.com"))), "does not take"));
  CHECK(mentions(refused(key.sign(claims_with("aud", "another"))), "audience"));
  CHECK(mentions(refused(key.sign(claims_with("exp", 1'799'999'000))), "expired"));
  CHECK(mentions(refused(key.sign(claims_with("nbf", 1'800'001'000))), "not good before"));
  CHECK(mentions(refused(test::sign_hmac({{"alg", "HS256"}, {"kid", "k"}}, claims(), test::key_set({&key}))), "RS256"));
  const std::string unsigned_token =
      test::base64url(R"({"alg":"none"})") + "." + test::base64url(boost::json::serialize(claims())) + ".";
  CHECK(mentions(refused(unsigned_token), "RS256"));
  CHECK(mentions(refused(std::string(1024 * 1024, 'x')), "16384"));
}

TEST_CASE("verifier: a new key is fetched when its first token comes; a withdrawn one ends with the next fetch") {
  const SigningKey old_key = SigningKey::ec("old");
  const SigningKey new_key = SigningKey::ec("new");
  World world;
  world.publish({&old_key});
  const auto verifier = world.verifier();
  const std::string by_old = old_key.sign(claims());
  const std::string by_new = new_key.sign(claims());
  CHECK(settled(*verifier, by_old, kNow).identity);
  world.publish({&new_key});
  CHECK(settled(*verifier, by_new, kNow).identity);
  CHECK_FALSE(settled(*verifier, by_old, kNow).identity);
}

TEST_CASE("verifier: made-up keys do not make it fetch without end") {
  const SigningKey key = SigningKey::ec("k");
  World world;
  world.publish({&key});
  const auto verifier = world.verifier();
  CHECK(settled(*verifier, key.sign(claims()), kNow).identity);
  const int before = world.loads;
  for (int i = 0; i < 50; ++i) {
    boost::json::object header = key.header();
    header["kid"] = "made-up-" + std::to_string(i);
    CHECK_FALSE(settled(*verifier, key.sign(header, boost::json::serialize(claims())), kNow).identity);
  }
  CHECK(world.loads - before <= 2);
}

TEST_CASE("verifier: when the issuer is away, its keys serve for keep_s and no longer") {
  const SigningKey key = SigningKey::ec("k");
  World world;
  world.publish({&key});
  const auto verifier = world.verifier();
  const auto at = [&](std::int64_t later_s) {
    const std::string token = key.sign(claims_with("exp", kNow.ms / 1000 + later_s + 600));
    world.now_ms = kNow.ms + later_s * 1000;
    return settled(*verifier, token, kNow + later_s * 1000);
  };
  CHECK(at(0).identity);
  world.away = true;
  CHECK(at(86'399).identity);
  CHECK(mentions(at(86'401).refusal, "for too long"));
  world.away = false;
  CHECK(at(86'500).identity);
}

TEST_CASE("verifier: keys that were never fetched are not told as a key that is not listed") {
  const SigningKey key = SigningKey::ec("k");
  World world;
  world.publish({&key});
  world.away = true;
  const auto verifier = world.verifier();
  const auto now = [&] { return Timestamp{world.now_ms}; };
  CHECK(mentions(settled(*verifier, key.sign(claims()), now()).refusal, "could not be fetched yet"));
  world.away = false;
  world.now_ms += 20'000;
  CHECK(settled(*verifier, key.sign(claims()), now()).identity);
}

TEST_CASE("verifier: a proved token ends when it says, not when it is forgotten") {
  const SigningKey key = SigningKey::ec("k");
  World world;
  world.publish({&key});
  const auto verifier = world.verifier();
  const std::string token = key.sign(claims());
  CHECK(settled(*verifier, token, kNow).identity);
  CHECK(settled(*verifier, token, kNow + 659'000).identity);
  CHECK_FALSE(settled(*verifier, token, kNow + 660'000).identity);
}

TEST_CASE("discovery: the document must be the issuer's own, and name keys that may be fetched") {
  const auto load = [](const std::string& document) {
    const auto keys = load_keys(test::issuer(), [&](const std::string&) -> Result<std::string> { return document; });
    return keys ? std::string() : keys.error().message;
  };
  CHECK(mentions(load(R"({"issuer":"https://login.example.com/","jwks_uri":"https://x"})"), "another issuer"));
  CHECK(mentions(load(R"({"issuer":"https://login.example.com"})"), "names no keys"));
  CHECK(mentions(load(R"({"issuer":"https://login.example.com","jwks_uri":"http://169.254.169.254/"})"), "https"));
  CHECK(mentions(load(R"({"issuer":"https://login.example.com","jwks_uri":"file:///etc/shadow"})"), "https"));
  CHECK(mentions(load("<html>"), "JSON"));
}

}  // namespace
}  // namespace berth::identity
