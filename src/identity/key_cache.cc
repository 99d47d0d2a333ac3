#include "identity/key_cache.h"

#include <algorithm>

namespace berth::identity {

const KeySet* KeyCache::keys(Timestamp now) const {
  if (!keys_ || now >= *last_good_ + keep_ms_) return nullptr;
  return &*keys_;
}

bool KeyCache::miss(Timestamp now) {
  const bool first_is_to_come = !last_good_ && failure_.empty();
  if (wanted_ || first_is_to_come) return true;
  if (last_miss_ && now < *last_miss_ + kUnknownKeyPauseMs) return fetching_;
  last_miss_ = now;
  // A fetch that is under way may have asked before the key was there, so another one follows it.
  wanted_ = true;
  return true;
}

bool KeyCache::due(Timestamp now) const {
  if (fetching_) return false;
  return wanted_ || !next_ || now >= *next_;
}

void KeyCache::begin_fetch() {
  fetching_ = true;
  wanted_ = false;
}

void KeyCache::fetched(KeySet keys, Timestamp now) {
  fetching_ = false;
  keys_ = std::move(keys);
  last_good_ = now;
  next_ = now + refresh_ms_;
  pause_ms_ = kFirstPauseMs;
  failure_.clear();
}

void KeyCache::failed(std::string why, Timestamp now) {
  fetching_ = false;
  next_ = now + pause_ms_;
  pause_ms_ = std::min(2 * pause_ms_, kLongestPauseMs);
  failure_ = std::move(why);
}

}  // namespace berth::identity
