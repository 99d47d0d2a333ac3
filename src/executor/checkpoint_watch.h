#pragma once
// Looks for `ack.json {attempt, step, time}`, which a job renames into its checkpoint directory after each save. It
// polls the directory: on a network file system there are no change notifications.

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "executor/record.h"

namespace berth::executor {

class CheckpointWatch {
 public:
  // With `owner`, an ack that belongs to another user is a bad one: a task could link a foreign file there.
  CheckpointWatch(std::string directory, std::uint32_t attempt, std::optional<uid_t> owner = {});

  // Passes over the ack that is there now. Another job may have left it in a directory of that job's choice.
  void skip_present();

  // Returns the ack that was renamed into place since the last look, or nothing. Acks of earlier attempts are ignored.
  std::optional<CheckpointAck> look();

  std::uint64_t bad_acks() const { return bad_acks_; }
  const std::string& last_problem() const { return last_problem_; }

 private:
  std::string path_;
  std::uint32_t attempt_;
  std::optional<uid_t> owner_;
  std::string seen_;  // identity of the last file seen
  std::uint64_t bad_acks_ = 0;
  std::string last_problem_;
};

}  // namespace berth::executor
