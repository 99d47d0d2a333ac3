#include "policy/rate_limit.h"

#include <doctest/doctest.h>

#include <string>

namespace berth::policy {
namespace {

TEST_CASE("rate limit: so many at once, then so many a second, each key by itself") {
  RateLimiter limiter({.per_second = 10, .burst = 3}, 100);
  for (int i = 0; i < 3; ++i) CHECK(limiter.take("eve", {1000}) == 0);
  CHECK(limiter.take("eve", {1000}) == 100);
  CHECK(limiter.take("bob", {1000}) == 0);
  CHECK(limiter.take("eve", {1099}) == 1);
  CHECK(limiter.take("eve", {1100}) == 0);
  CHECK(limiter.take("eve", {1100}) == 100);
  for (int i = 0; i < 3; ++i) CHECK(limiter.take("eve", {60'000}) == 0);  // no more than its burst is saved up
  CHECK(limiter.take("eve", {60'000}) == 100);
}

TEST_CASE("rate limit: a clock that goes back takes nothing away and gives nothing") {
  RateLimiter limiter({.per_second = 1, .burst = 1}, 100);
  CHECK(limiter.take("eve", {5000}) == 0);
  CHECK(limiter.take("eve", {1000}) == 1000);
  CHECK(limiter.take("eve", {5500}) == 500);
  CHECK(limiter.take("eve", {6000}) == 0);
}

TEST_CASE("rate limit: any number of keys is held in bounded memory, and they do not make room for more requests") {
  RateLimiter limiter({.per_second = 1, .burst = 2}, 50);
  int let_through = 0;
  for (int i = 0; i < 10'000; ++i) let_through += limiter.take("address " + std::to_string(i), {1000}) == 0 ? 1 : 0;
  CHECK(limiter.keys() == 50);
  CHECK(let_through == 50 + 2);                   // those with a bucket, and the burst of the shared one
  CHECK(limiter.take("address 0", {1000}) == 0);  // keeps its own bucket
  CHECK(limiter.take("late", {9000}) == 0);       // those that have been quiet are forgotten
  CHECK(limiter.keys() == 50);
}

TEST_CASE("rate limit: none, and what is no limit") {
  CHECK(RateLimiter({}, 10).take("eve", {1}) == 0);
  CHECK(parse_rate_limit("none")->per_second == 0);
  CHECK(parse_rate_limit("500")->burst == 2000);
  CHECK(parse_rate_limit("500/600")->burst == 600);
  for (const char* wrong : {"", "0", "-1", "5/", "/5", "5/0", "5/6/7", "1e3", "fast", "10000001"}) {
    CAPTURE(wrong);
    CHECK_FALSE(parse_rate_limit(wrong));
  }
  CHECK(parse_rate_limit("fast").error().message.find("500/2000") != std::string::npos);
}

}  // namespace
}  // namespace berth::policy
