#pragma once
// Who is signed in on the web page. A session is found by the digest of the secret in its cookie, so that a dump of the
// table gives no session away. Pure but for its lock; time is an argument. Rules:
//   1. A session ends kLongestMs after it began, or when nothing was asked with it for kIdleMs.
//   2. What its issuer said of its user is good until the ID token ends. Where the issuer gave a refresh token, it is
//      asked anew every kRenewMs; a refusal ends the session at once, an issuer that is away does not.
//   3. There are at most kMost sessions, kMostOfUser of one user; over that, the one that was used least recently ends.

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/timestamp.h"
#include "identity/claims.h"

namespace berth::daemon {

class PageSessions {
 public:
  static constexpr std::int64_t kLongestMs = 12 * 3'600'000;
  static constexpr std::int64_t kIdleMs = 2 * 3'600'000;
  static constexpr std::int64_t kRenewMs = 5 * 60'000;
  static constexpr std::size_t kMost = 10'000;
  static constexpr std::size_t kMostOfUser = 20;

  struct Known {
    identity::Identity identity;
    std::string change_token;
  };
  struct Found {
    std::optional<Known> known = {};
    std::string refresh_token = {};  // set if the caller is to ask the issuer anew, with it
    std::string issuer = {};
    bool renewing = false;  // the issuer is being asked
  };

  // `digest`: of the new session's secret.
  void begin(const std::string& digest, Known known, std::string refresh_token, Timestamp now);
  Found find(const std::string& digest, Timestamp now);
  // The issuer has answered; without an identity: `refused`, or it is away.
  void renewed(const std::string& digest, std::optional<identity::Identity> identity, std::string refresh_token,
               bool refused, Timestamp now);
  // Calls back once when the issuer has answered; at once if it is not being asked.
  void when_renewed(const std::string& digest, std::function<void()> callback);
  void end(const std::string& digest);
  std::size_t size() const;

 private:
  struct Session {
    Known known;
    std::string refresh_token;
    Timestamp begun;
    Timestamp used;
    Timestamp renew;  // when the issuer is to be asked anew
    bool renewing = false;
    std::vector<std::function<void()>> waiting = {};
  };
  using Table = std::map<std::string, Session>;

  static bool has_ended(const Session& session, Timestamp now);
  // Both require the lock, and give what is to be called without it.
  void make_room(const std::string& user, Timestamp now, std::vector<std::function<void()>>& waiting);
  void erase(Table::iterator session, std::vector<std::function<void()>>& waiting);

  mutable std::mutex mutex_;
  Table sessions_;
};

}  // namespace berth::daemon
