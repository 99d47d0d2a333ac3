#pragma once
// How often one thing may be changed by requests: a job's hold or priority to and fro, a role granted and revoked. Each
// change is an event that is kept, so without a limit one held job fills the disk within a day. Changes of different
// things do not count together.

#include <mutex>
#include <string>

#include "base/result.h"
#include "base/timestamp.h"
#include "model/command.h"
#include "policy/rate_limit.h"

namespace berth::daemon {

class ChangeLimit {
 public:
  ChangeLimit();

  // Takes one change of what the command is about. Error kUnavailable: it was changed too often of late. Commands that
  // end something, and those of operators and administrators alone, are not counted. From any thread.
  Result<void> take(const Command& command, Timestamp now);

 private:
  std::mutex mutex_;  // guards what follows
  policy::RateLimiter changes_;
  policy::RateLimiter checkpoints_;
};

}  // namespace berth::daemon
