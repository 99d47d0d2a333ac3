#include "executor/checkpoint_watch.h"

#include <sys/stat.h>

#include "executor/state_file.h"

namespace berth::executor {

namespace {

constexpr std::size_t kAckLimit = 4096;

// Two files in one place differ in this, even when they hold the same bytes.
std::string identify(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return "";
  return std::to_string(status.st_ino) + " " + std::to_string(status.st_size) + " " +
         std::to_string(status.st_ctim.tv_sec) + " " + std::to_string(status.st_ctim.tv_nsec);
}

}  // namespace

CheckpointWatch::CheckpointWatch(std::string directory, std::uint32_t attempt, std::optional<uid_t> owner)
    : path_(directory.empty() ? "" : directory + "/ack.json"), attempt_(attempt), owner_(owner) {}

void CheckpointWatch::skip_present() {
  if (!path_.empty()) seen_ = identify(path_);
}

std::optional<CheckpointAck> CheckpointWatch::look() {
  if (path_.empty()) return std::nullopt;
  const std::string now = identify(path_);
  if (now.empty() || now == seen_) return std::nullopt;
  seen_ = now;
  const auto bytes = read_state_file(path_, kAckLimit, owner_);
  auto ack = bytes ? decode_ack(*bytes) : Result<CheckpointAck>(bytes.error());
  if (ack && ack->attempt > attempt_)
    ack = invalid("it is of attempt " + std::to_string(ack->attempt) + ", not yet begun");
  if (!ack) {
    ++bad_acks_;
    last_problem_ = ack.error().message;
    return std::nullopt;
  }
  if (ack->attempt < attempt_) return std::nullopt;
  return *ack;
}

}  // namespace berth::executor
