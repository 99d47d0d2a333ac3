#include "policy/rate_limit.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>

namespace berth::policy {
namespace {

constexpr std::int64_t kMostPerSecond = 1'000'000;
constexpr std::int64_t kMostAtOnce = 10'000'000;

std::optional<std::int64_t> number_in(std::string_view text, std::int64_t most) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 1 || number > most) return std::nullopt;
  return number;
}

}  // namespace

Result<RateLimit> parse_rate_limit(std::string_view text) {
  if (text == "none") return RateLimit{};
  const std::size_t slash = text.find('/');
  const auto per_second = number_in(text.substr(0, slash), kMostPerSecond);
  if (per_second && slash == std::string_view::npos) return RateLimit{*per_second, *per_second * 4};
  const auto burst = slash == std::string_view::npos ? std::nullopt : number_in(text.substr(slash + 1), kMostAtOnce);
  if (per_second && burst) return RateLimit{*per_second, *burst};
  return invalid("'" + std::string(text.substr(0, 40)) +
                 "' is no limit: give requests per second and at once, as 500/2000, or none");
}

void RateLimiter::refill(Bucket& bucket, Timestamp now) const {
  const std::int64_t full = limit_.burst * 1000;
  const std::int64_t missing = full - bucket.milli;
  const std::int64_t passed = std::max<std::int64_t>(now - bucket.at, 0);
  // A request a second is a thousandth of a request a millisecond.
  bucket.milli = passed >= missing ? full : std::min(full, bucket.milli + passed * limit_.per_second);
  bucket.at = std::max(bucket.at, now);
}

RateLimiter::Bucket& RateLimiter::bucket_of(std::string_view key, Timestamp now) {
  if (Bucket* known = buckets_.find(key)) return *known;
  if (buckets_.full()) {
    Bucket oldest = buckets_.oldest();
    refill(oldest, now);
    if (oldest.milli < limit_.burst * 1000) {  // all others were used since, so none of them can be forgotten either
      if (!shared_begun_) shared_ = full_bucket(now);
      shared_begun_ = true;
      return shared_;
    }
    buckets_.drop_oldest();
  }
  return buckets_.add(key, full_bucket(now));
}

std::int64_t RateLimiter::take(std::string_view key, Timestamp now) {
  if (limit_.per_second == 0) return 0;
  Bucket& bucket = bucket_of(key, now);
  refill(bucket, now);
  if (bucket.milli >= 1000) {
    bucket.milli -= 1000;
    return 0;
  }
  return (1000 - bucket.milli + limit_.per_second - 1) / limit_.per_second;
}

}  // namespace berth::policy
