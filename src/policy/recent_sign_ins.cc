#include "policy/recent_sign_ins.h"

#include <string>
#include <utility>

namespace berth::policy {

void RecentSignIns::seen(SignedIn who, std::string_view session, Timestamp now) {
  const std::string key = who.subject + "\n" + who.proof + "\n" + std::string(session);
  Timestamp* last = seen_.find(key);
  const bool signs_in = last == nullptr || now - *last >= kQuietMs;
  if (signs_in && fresh_.size() >= kMostWaiting) return;
  if (last != nullptr) {
    *last = now;
  } else {
    if (seen_.full()) seen_.drop_oldest();
    seen_.add(key, now);
  }
  if (signs_in) fresh_.push_back(std::move(who));
}

std::vector<SignedIn> RecentSignIns::take() { return std::exchange(fresh_, {}); }

}  // namespace berth::policy
