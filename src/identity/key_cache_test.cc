#include "identity/key_cache.h"

#include <doctest/doctest.h>

#include "identity/test_keys.h"

namespace berth::identity {
namespace {

KeySet some_keys() {
  static const test::SigningKey key = test::SigningKey::ec("e");
  return *KeySet::read(test::key_set({&key}));
}

TEST_CASE("key cache: keys are fetched at the start and again every refresh_s") {
  KeyCache cache(test::issuer());
  CHECK(cache.due(test::kNow));
  CHECK(cache.keys(test::kNow) == nullptr);
  cache.begin_fetch();
  CHECK_FALSE(cache.due(test::kNow));
  cache.fetched(some_keys(), test::kNow);
  CHECK(cache.keys(test::kNow) != nullptr);
  CHECK_FALSE(cache.due(test::kNow + 299'999));
  CHECK(cache.due(test::kNow + 300'000));
}

TEST_CASE("key cache: an issuer that is away is served by its last keys for keep_s, and asked at growing pauses") {
  KeyCache cache(test::issuer());
  cache.begin_fetch();
  cache.fetched(some_keys(), test::kNow);
  Timestamp now = test::kNow + 300'000;
  int tries = 0;
  std::int64_t longest = 0;
  while (cache.keys(now) != nullptr) {
    REQUIRE(cache.due(now));
    cache.begin_fetch();
    cache.failed("away", now);
    ++tries;
    const Timestamp before = now;
    while (!cache.due(now)) now = now + 500;
    longest = std::max(longest, now - before);
  }
  CHECK(now - test::kNow >= 86'400'000);
  CHECK(now - test::kNow < 86'400'000 + KeyCache::kLongestPauseMs);
  CHECK_EQ(longest, KeyCache::kLongestPauseMs);
  CHECK(tries < 1500);
  cache.begin_fetch();
  cache.fetched(some_keys(), now);
  CHECK(cache.keys(now) != nullptr);
  CHECK_EQ(cache.failure(), "");
}

TEST_CASE("key cache: an unknown key has them fetched at once, but only so often") {
  KeyCache cache(test::issuer());
  cache.begin_fetch();
  cache.fetched(some_keys(), test::kNow);
  CHECK(cache.miss(test::kNow + 1'000));
  CHECK(cache.due(test::kNow + 1'000));
  CHECK(cache.miss(test::kNow + 1'001));  // the same fetch
  cache.begin_fetch();
  CHECK(cache.miss(test::kNow + 1'002));  // is under way
  cache.fetched(some_keys(), test::kNow + 1'100);
  int fetches = 0;
  for (std::int64_t ms = 1'100; ms < 61'000; ms += 10) {  // 6,000 tokens with made-up keys
    if (cache.miss(test::kNow + ms)) {
      cache.begin_fetch();
      cache.fetched(some_keys(), test::kNow + ms);
      ++fetches;
    }
  }
  CHECK(fetches <= 6);
  CHECK(fetches >= 5);
}

TEST_CASE("key cache: a miss during a fetch is followed by another fetch") {
  KeyCache cache(test::issuer());
  cache.begin_fetch();
  CHECK(cache.miss(test::kNow));  // the first fetch has all that can be known
  cache.fetched(some_keys(), test::kNow + 10);
  CHECK_FALSE(cache.due(test::kNow + 10));
  cache.begin_fetch();
  CHECK(cache.miss(test::kNow + 20));
  cache.fetched(some_keys(), test::kNow + 30);
  CHECK(cache.due(test::kNow + 30));
}

}  // namespace
}  // namespace berth::identity
