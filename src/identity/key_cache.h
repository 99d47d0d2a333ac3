#pragma once
// When the keys of one issuer are fetched, and how long they serve. Pure: time is an argument. Rules:
//   1. Keys are fetched at the start, and again every `refresh_s`. So a key that the issuer withdrew is refused after
//   at
//      most that time.
//   2. A token with an unknown key has them fetched at once, but such fetches are at least kUnknownKeyPauseMs apart.
//   3. A fetch that failed is repeated after a pause that doubles, up to kLongestPauseMs.
//   4. If the issuer is away, the keys of the last good fetch serve for `keep_s`; then its tokens are refused.

#include <cstdint>
#include <optional>
#include <string>

#include "base/timestamp.h"
#include "identity/issuer.h"
#include "identity/key_set.h"

namespace berth::identity {

class KeyCache {
 public:
  static constexpr std::int64_t kUnknownKeyPauseMs = 10'000;
  static constexpr std::int64_t kFirstPauseMs = 1'000;
  static constexpr std::int64_t kLongestPauseMs = 60'000;

  explicit KeyCache(const Issuer& issuer) : refresh_ms_(issuer.refresh_s * 1000), keep_ms_(issuer.keep_s * 1000) {}

  // Returns the keys that serve now; null if there are none.
  const KeySet* keys(Timestamp now) const;

  // A token has come whose key is not among them. Returns true if a fetch follows at once or is under way.
  bool miss(Timestamp now);

  bool due(Timestamp now) const;
  void begin_fetch();
  void fetched(KeySet keys, Timestamp now);
  void failed(std::string why, Timestamp now);

  bool fetching() const { return fetching_; }
  const std::string& failure() const { return failure_; }  // of the last fetch; empty: it was good
  std::optional<Timestamp> last_good() const { return last_good_; }

 private:
  std::int64_t refresh_ms_;
  std::int64_t keep_ms_;
  std::optional<KeySet> keys_;
  std::optional<Timestamp> last_good_;
  std::optional<Timestamp> last_miss_;  // that led to a fetch
  std::optional<Timestamp> next_;       // fetch; nothing: at once
  std::int64_t pause_ms_ = kFirstPauseMs;
  bool fetching_ = false;
  bool wanted_ = false;  // by a miss, and not begun
  std::string failure_;
};

}  // namespace berth::identity
