#pragma once
// Acts on files with the rights of a task's user as long as it lives, where there is one. A file server may give root
// less than the user has (root_squash).
//
// Requires: this process is root and has one thread.

#include <sys/fsuid.h>

#include <optional>

#include "executor/task.h"

namespace berth::executor {

class AsUser {
 public:
  explicit AsUser(const std::optional<TaskUser>& user) : is_other_(user.has_value()) {
    if (!is_other_) return;
    ::setfsgid(user->gid);
    ::setfsuid(user->uid);
  }
  ~AsUser() {
    if (!is_other_) return;
    ::setfsuid(0);
    ::setfsgid(0);
  }
  AsUser(const AsUser&) = delete;
  AsUser& operator=(const AsUser&) = delete;

 private:
  bool is_other_;
};

}  // namespace berth::executor
