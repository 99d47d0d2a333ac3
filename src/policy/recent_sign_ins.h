#pragma once
// Which subjects of identity providers have signed in, so that the log has the first use of each session. On the web
// page a session is one; signed tokens have none, so there a subject signs in when a token of it comes after kQuietMs
// without any. Pure: the time is an argument. Its memory is bounded: a subject that was forgotten is noted again.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/timestamp.h"
#include "model/event.h"
#include "policy/recent_keys.h"

namespace berth::policy {

class RecentSignIns {
 public:
  static constexpr std::int64_t kQuietMs = 12 * 3'600'000;
  static constexpr std::size_t kMostKept = 16'384;
  static constexpr std::size_t kMostWaiting = 1'000;  // a use that does not fit is noted at a later one

  explicit RecentSignIns(std::size_t most = kMostKept) : seen_(most) {}

  // A request of the subject came, of this session; empty: of none.
  void seen(SignedIn who, std::string_view session, Timestamp now);
  // Returns those that have signed in since the last call.
  std::vector<SignedIn> take();

 private:
  RecentKeys<Timestamp> seen_;
  std::vector<SignedIn> fresh_;
};

}  // namespace berth::policy
