#pragma once
// How often a client may ask: a token bucket for each key (a subject, or the address of nobody known). Pure: the time
// is an argument. Its memory is bounded: when it holds as many keys as it may and none of them has been quiet for long
// enough to be forgotten, further keys share one bucket.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "base/timestamp.h"
#include "policy/recent_keys.h"

namespace berth::policy {

struct RateLimit {
  std::int64_t per_second = 0;  // 0: no limit
  std::int64_t burst = 0;       // as many at once, after a pause
};

// Reads "500/2000" (per second / at once), "500" (four times as many at once), or "none".
Result<RateLimit> parse_rate_limit(std::string_view text);

class RateLimiter {
 public:
  RateLimiter(RateLimit limit, std::size_t most_keys) : limit_(limit), buckets_(most_keys) {}

  // Takes one request of the key. Returns 0, or the milliseconds after which there is room for it again; a request that
  // is refused takes nothing.
  std::int64_t take(std::string_view key, Timestamp now);
  std::size_t keys() const { return buckets_.size(); }

 private:
  struct Bucket {
    std::int64_t milli = 0;  // thousandths of a request that it holds
    Timestamp at;            // as of then
  };

  Bucket full_bucket(Timestamp now) const { return {limit_.burst * 1000, now}; }
  void refill(Bucket& bucket, Timestamp now) const;
  Bucket& bucket_of(std::string_view key, Timestamp now);

  RateLimit limit_;
  RecentKeys<Bucket> buckets_;
  Bucket shared_;
  bool shared_begun_ = false;
};

}  // namespace berth::policy
