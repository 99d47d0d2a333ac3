#pragma once
// The door for signed tokens of identity providers: proves them (identity/verifier.h), gives their bearers the roles of
// the access table, and logs what is refused and which issuer is away. No token is logged.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "api/http/authenticator.h"
#include "daemon/access_table.h"
#include "daemon/server_clock.h"
#include "identity/verifier.h"

namespace berth::daemon {

class IssuerDoor {
 public:
  // The table and the clock must outlive it.
  IssuerDoor(std::vector<identity::Issuer> issuers, const AccessTable& access, ServerClock& clock);

  std::shared_ptr<identity::Verifier> verifier() const { return verifier_; }

  // For any thread; does not block.
  http::Identification identify(std::string_view token, const http::TokenDigest& digest);

 private:
  void log_refusal(const std::string& why, Timestamp now);

  const AccessTable& access_;
  ServerClock& clock_;
  std::shared_ptr<identity::Verifier> verifier_;
  std::mutex mutex_;
  std::map<std::string, std::uint64_t> refused_;  // since the last line of the log, by what was wrong
  Timestamp next_line_;
};

}  // namespace berth::daemon
