#pragma once
// Counts in memory what the threads of the API deny, and notes who signs in. A thread of its own hands it to the loop:
// denials at most once a minute, sign-ins within a second. So a flood of denials costs neither the loop nor the log
// anything, and no request waits for it.

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "daemon/inbox.h"
#include "daemon/server_clock.h"
#include "policy/denial_counter.h"
#include "policy/recent_sign_ins.h"

namespace berth::daemon {

class AuditDesk {
 public:
  // Both have to outlive it.
  AuditDesk(Inbox& inbox, ServerClock& clock);
  ~AuditDesk();
  AuditDesk(const AuditDesk&) = delete;
  AuditDesk& operator=(const AuditDesk&) = delete;

  // Any thread; none blocks for long.
  void denied(AccessDenied denied);
  void unauthenticated(const std::string& address);
  void signed_in(SignedIn who, const std::string& session);

  // Hands over what was counted so far and ends the thread. The loop has to run still.
  void stop();

 private:
  void run();
  void write(std::vector<AccessDenied> denials, std::vector<SignedIn> sign_ins);

  Inbox& inbox_;
  ServerClock& clock_;
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stopping_ = false;
  policy::DenialCounter denials_;
  policy::RecentSignIns sign_ins_;
  std::thread thread_;
};

}  // namespace berth::daemon
