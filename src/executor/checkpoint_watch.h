#pragma once
// Looks for `ack.json {attempt, step, time}`, which a job renames into its checkpoint directory whenever it has saved.
// The directory may be on a network file system, where nobody is told of changes: it is looked at, not listened to.

#include <cstdint>
#include <optional>
#include <string>

#include "executor/record.h"

namespace berth::executor {

class CheckpointWatch {
 public:
  CheckpointWatch(std::string directory, std::uint32_t attempt);

  // The ack that was renamed into place since the last look. Those of earlier attempts are none of ours.
  std::optional<CheckpointAck> look();

  std::uint64_t bad_acks() const { return bad_acks_; }
  const std::string& last_problem() const { return last_problem_; }

 private:
  std::string path_;
  std::uint32_t attempt_;
  std::string seen_;  // which file it was
  std::uint64_t bad_acks_ = 0;
  std::string last_problem_;
};

}  // namespace berth::executor
