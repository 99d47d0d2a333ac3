#pragma once
// How often each subject, and each address of nobody known, may ask (docs/api.md, rate limits). Any thread. Its memory
// is bounded, whatever comes.

#include <cstdint>
#include <mutex>
#include <string>

#include "api/http/gate.h"
#include "daemon/server_clock.h"
#include "policy/rate_limit.h"

namespace berth::daemon {

class Gatekeeper {
 public:
  static constexpr std::size_t kMostSubjects = 16'384;
  static constexpr std::size_t kMostAddresses = 4'096;

  // The clock has to outlive it.
  Gatekeeper(policy::RateLimit of_subjects, policy::RateLimit of_addresses, ServerClock& clock)
      : clock_(clock), subjects_(of_subjects, kMostSubjects), addresses_(of_addresses, kMostAddresses) {}

  // For a server that does not outlive it.
  http::Gate gate();

 private:
  std::int64_t take(const std::string& subject, const std::string& address);

  ServerClock& clock_;
  std::mutex mutex_;
  policy::RateLimiter subjects_;
  policy::RateLimiter addresses_;
};

}  // namespace berth::daemon
