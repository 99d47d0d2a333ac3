#pragma once
// Which user of the operating system a task runs as (decision 0027). The rule, on a server that is root:
//
// 1. The account with the name of the job's user, if it is that of a person: its uid is 1000 or more, and not nobody's.
// 2. Else the account --task-user, where one is named.
// 3. Else a uid of a range that is no account's. Each name of a job's user gets its own, once and for all: the file
//    `task-uids` of the data directory has them.
//
// Servers of root on one machine share no uid of the range: each holds those that it has given out (machine_lock.h). A
// uid that another one holds is passed over, and a user whose uid it was gets another one.
//
// So no task runs as root or as an account of the system. A server that is not root runs every task as itself.

#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/result.h"
#include "executor/machine_lock.h"
#include "executor/task.h"

namespace berth::backend {

struct UidRange {
  uid_t first = 50'000;
  uid_t last = 59'999;
};

struct TaskUserFlags {
  std::string account;  // --task-user; empty: none
  std::string range;    // --task-uid-range FROM-TO; empty: the default
};

class TaskUsers {
 public:
  // Everything as the server's own user.
  TaskUsers() = default;

  // Requires: the data directory exists. Error kInvalid: a flag is wrong. Errors kIo and kCorrupt: the file of uids.
  static Result<TaskUsers> open(const TaskUserFlags& flags, const std::string& data_dir);

  // Returns nothing if tasks run as the server's own user. A user without a home has none. Error kIo: the machine
  // cannot tell now; another try may succeed. Error kUnsupported: no uid of the range is free.
  Result<std::optional<executor::TaskUser>> user_of(const std::string& submitter);

  // Returns true if tasks of other users of jobs run as the uid of this one's, too. Any thread may call it.
  bool shares_uid(const std::string& submitter) const;

  bool is_on() const { return is_on_; }  // false: everything runs as the server's own user

  // Returns how many users have to get another uid, because another server of this machine holds theirs; a sentence.
  std::string note() const;

  // Returns the rule as a sentence for the start of the server.
  std::string describe() const;

 private:
  Result<executor::TaskUser> from_range(const std::string& submitter);
  Result<uid_t> take_uid(const std::string& submitter);
  void hold_own_uids();

  bool is_on_ = false;
  std::optional<executor::TaskUser> fallback_;
  UidRange range_;
  std::string file_;
  std::optional<executor::MachineLock> lock_;
  std::set<uid_t> of_others_;          // which another server held at the start
  std::map<uid_t, std::string> uids_;  // the name of the job's user that each was taken for; none is taken back
};

// Returns an error if the text is not FROM-TO, or has uids of the system.
Result<UidRange> read_uid_range(const std::string& text);

// Returns the first directory on the way to `path`, or `path` itself, that other users may not enter, else "".
std::string closed_to_others(const std::string& path);

}  // namespace berth::backend
