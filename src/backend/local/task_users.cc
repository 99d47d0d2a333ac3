#include "backend/local/task_users.h"

#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "executor/state_file.h"

namespace berth::backend {

namespace {

constexpr uid_t kFirstPerson = 1'000;
constexpr uid_t kNobody = 65'534;
constexpr uid_t kLargestUid = 4'294'967'293;  // the two above it mean "none"
constexpr std::size_t kLargestFile = 64 << 20;
constexpr std::size_t kAccountBytes = 64 << 10;

// Looks one account up. Nothing: there is none. Error kIo: the machine's lists of users cannot be read now.
template <class LookUp>
Result<std::optional<executor::TaskUser>> find_account(const std::string& what, const LookUp& look_up) {
  std::vector<char> buffer(kAccountBytes);
  passwd entry{};
  passwd* found = nullptr;
  const int problem = look_up(&entry, buffer.data(), buffer.size(), &found);
  if (found != nullptr)
    return std::optional(executor::TaskUser{entry.pw_uid, entry.pw_gid, entry.pw_name, entry.pw_dir, entry.pw_shell});
  if (problem != 0 && problem != ENOENT && problem != ESRCH)
    return Error{ErrorCode::kIo, executor::system_error("look up", what, problem).message};
  return std::optional<executor::TaskUser>();
}

Result<std::optional<executor::TaskUser>> find_account_named(const std::string& name) {
  return find_account("the account " + name, [&](passwd* entry, char* buffer, std::size_t size, passwd** found) {
    return ::getpwnam_r(name.c_str(), entry, buffer, size, found);
  });
}

Result<std::optional<executor::TaskUser>> find_account_of(uid_t uid) {
  return find_account("uid " + std::to_string(uid), [&](passwd* entry, char* buffer, std::size_t size, passwd** found) {
    return ::getpwuid_r(uid, entry, buffer, size, found);
  });
}

bool is_group(gid_t gid) {
  std::vector<char> buffer(kAccountBytes);
  group entry{};
  group* found = nullptr;
  ::getgrgid_r(gid, &entry, buffer.data(), buffer.size(), &found);
  return found != nullptr;
}

// A lookup may find an account by another spelling. That is another name, and may be another person.
bool is_person(const executor::TaskUser& account, const std::string& name) {
  return account.name == name && account.uid >= kFirstPerson && account.uid != kNobody && account.uid <= kLargestUid;
}

std::optional<uid_t> read_uid(std::string_view text) {
  std::uint64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() || number > kLargestUid) return std::nullopt;
  return static_cast<uid_t>(number);
}

// Each line is a uid, a blank and the name.
Result<std::map<uid_t, std::string>> read_uids(const std::string& file) {
  std::map<uid_t, std::string> uids;
  const auto bytes = executor::read_state_file(file, kLargestFile);
  if (!bytes && bytes.error().code == ErrorCode::kNotFound) return uids;
  if (!bytes) return bytes.error();
  std::istringstream lines(*bytes);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t blank = line.find(' ');
    const auto uid = read_uid(std::string_view(line).substr(0, blank));
    if (!uid || *uid == 0 || blank == std::string::npos)
      return Error{ErrorCode::kCorrupt, file + ": this is no line of it: " + line.substr(0, 80)};
    uids[*uid] = line.substr(blank + 1);
  }
  return uids;
}

Result<void> write_uids(const std::string& file, const std::map<uid_t, std::string>& uids) {
  std::string text;
  for (const auto& [uid, name] : uids) text += std::to_string(uid) + " " + name + "\n";
  return executor::replace_state_file(file, text);
}

Result<executor::TaskUser> read_fallback(const std::string& name) {
  auto account = find_account_named(name);
  if (!account) return account.error();
  if (!*account) return invalid("--task-user: this machine has no account '" + name + "'");
  if ((*account)->uid == 0) return invalid("--task-user: '" + name + "' is root, and no task runs as root");
  return std::move(**account);
}

}  // namespace

Result<UidRange> read_uid_range(const std::string& text) {
  const std::size_t dash = text.find('-');
  const auto first = read_uid(std::string_view(text).substr(0, dash));
  const auto last = dash == std::string::npos ? std::nullopt : read_uid(std::string_view(text).substr(dash + 1));
  if (!first || !last || *first > *last)
    return invalid("--task-uid-range: '" + text + "' is not FROM-TO, as 50000-59999 is");
  if (*first < kFirstPerson)
    return invalid("--task-uid-range: uids below " + std::to_string(kFirstPerson) + " are those of the system");
  if (*first <= kNobody && kNobody <= *last)
    return invalid("--task-uid-range: " + std::to_string(kNobody) + " is nobody's, and cannot be in it");
  return UidRange{*first, *last};
}

Result<TaskUsers> TaskUsers::open(const TaskUserFlags& flags, const std::string& data_dir) {
  TaskUsers users;
  if (!flags.account.empty() && !flags.range.empty())
    return invalid("--task-user and --task-uid-range: give one of them; both say who runs the tasks of other users");
  if (!flags.range.empty()) {
    const auto range = read_uid_range(flags.range);
    if (!range) return range.error();
    users.range_ = *range;
  }
  if (::geteuid() != 0) {
    if (flags.account.empty() && flags.range.empty()) return users;
    return invalid("--task-user and --task-uid-range are for a server that is root; this one runs all tasks as itself");
  }
  users.is_on_ = true;
  if (!flags.account.empty()) {
    auto fallback = read_fallback(flags.account);
    if (!fallback) return fallback.error();
    users.fallback_ = std::move(*fallback);
  }
  users.file_ = data_dir + "/task-uids";
  auto uids = read_uids(users.file_);
  if (!uids) return uids.error();
  users.uids_ = std::move(*uids);
  auto lock = executor::MachineLock::open();
  if (!lock)
    return Error{lock.error().code,
                 "cannot keep the uids of tasks apart from those of other servers of root: " + lock.error().message};
  users.lock_ = std::move(*lock);
  users.hold_own_uids();
  return users;
}

void TaskUsers::hold_own_uids() {
  std::int64_t patience_ms = executor::kMachineLockPatienceMs;  // once: nobody leaves some of its locks behind
  for (const auto& [uid, name] : uids_) {
    if (lock_->take(executor::lock_of_uid(uid), patience_ms)) continue;
    of_others_.insert(uid);
    patience_ms = 0;
  }
}

std::string TaskUsers::note() const {
  if (of_others_.empty()) return {};
  const bool one = of_others_.size() == 1;
  return std::to_string(of_others_.size()) + (one ? " user of jobs gets" : " users of jobs get") +
         " another uid: another server of root on this machine holds " + (one ? "its uid" : "their uids") + " (" +
         std::to_string(*of_others_.begin()) + (one ? "" : ", ...") +
         "). Give each server a --task-uid-range of its own to keep them";
}

Result<std::optional<executor::TaskUser>> TaskUsers::user_of(const std::string& submitter) {
  if (!is_on_) return std::optional<executor::TaskUser>();
  auto account = find_account_named(submitter);
  if (!account) return account.error();
  if (*account && is_person(**account, submitter)) return account;
  if (fallback_) return fallback_;
  auto user = from_range(submitter);
  if (!user) return user.error();
  return std::optional(std::move(*user));
}

bool TaskUsers::shares_uid(const std::string& submitter) const {
  if (!fallback_) return false;
  const auto account = find_account_named(submitter);
  return !account || !*account || !is_person(**account, submitter) || (*account)->uid == fallback_->uid;
}

Result<executor::TaskUser> TaskUsers::from_range(const std::string& submitter) {
  const auto uid = take_uid(submitter);
  if (!uid) return uid.error();
  return executor::TaskUser{*uid, *uid, submitter, {}, "/bin/sh", true};
}

// A uid that has become an account's, is out of a range that was changed, or is held by another server, is not used any
// more, nor given to another name.
Result<uid_t> TaskUsers::take_uid(const std::string& submitter) {
  for (const auto& [uid, name] : uids_) {
    if (name != submitter || uid < range_.first || uid > range_.last || of_others_.contains(uid)) continue;
    const auto account = find_account_of(uid);
    if (!account) return account.error();
    if (!*account) return uid;
  }
  for (uid_t uid = range_.first; uid <= range_.last; ++uid) {
    if (uids_.contains(uid) || is_group(uid)) continue;
    const auto account = find_account_of(uid);
    if (!account) return account.error();
    if (*account || !lock_->take(executor::lock_of_uid(uid))) continue;
    auto uids = uids_;
    uids[uid] = submitter;
    if (auto written = write_uids(file_, uids); !written) return written.error();
    uids_ = std::move(uids);
    return uid;
  }
  return Error{ErrorCode::kUnsupported, "no uid of --task-uid-range " + std::to_string(range_.first) + "-" +
                                            std::to_string(range_.last) + " is free for user " + submitter};
}

std::string TaskUsers::describe() const {
  if (!is_on_) return "tasks run as the server's own user";
  const std::string others =
      fallback_ ? "account " + fallback_->name
                : "a uid of " + std::to_string(range_.first) + " to " + std::to_string(range_.last) + " for each user";
  return "a task runs as the account of its job's user if that is a person's, else as " + others;
}

std::string closed_to_others(const std::string& path) {
  for (std::size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string part = path.substr(0, slash);
    struct stat status {};
    if (::stat(part.c_str(), &status) == 0 && (status.st_mode & S_IXOTH) == 0) return part;
    if (slash == std::string::npos) return {};
  }
}

}  // namespace berth::backend
