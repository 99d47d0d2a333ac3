#pragma once
// Reads of what other users' jobs wrote are in the log of events: one event for each subject, job and minute. With the
// query parameter break_glass, whose text is the reason, a subject that has the verb break-glass reads a log that its
// roles do not cover; the reason is in the event, and in the view of the job.

#include <chrono>
#include <mutex>
#include <string>

#include "api/http/message.h"
#include "api/service.h"
#include "base/result.h"
#include "base/timestamp.h"
#include "policy/recent_keys.h"

namespace berth::api {

inline constexpr const char* kBreakGlassParameter = "break_glass";
inline constexpr std::size_t kLongestBreakGlassReason = 200;  // bytes

// Returns the reason that the request states, without blanks around it; empty if it states none. Error: it is blank,
// too long, or not on one line.
Result<std::string> break_glass_reason(const http::Request& request);

// Which reads are in the log already. Any thread; its memory is bounded.
class LogAccess {
 public:
  static constexpr std::int64_t kOncePerMs = 60'000;

  // Returns when the read of the job's log may go on: at once if the job is the subject's own or the read was noted
  // less than a minute ago, else when the event is durable. Error: it could not be written, so nothing may be read.
  // Waits for the disk, so it is for the threads of reads.
  Result<void> note(Service& service, const http::Request& request, JobId job);

 private:
  static constexpr std::size_t kMostKept = 4096;
  static constexpr std::chrono::seconds kLongestWait{10};

  bool was_noted(const std::string& key, Timestamp now);
  void keep(const std::string& key, Timestamp now);

  std::mutex mutex_;
  policy::RecentKeys<Timestamp> noted_{kMostKept};
};

}  // namespace berth::api
