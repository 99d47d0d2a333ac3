#include "executor/user_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "executor/descriptor.h"
#include "executor/state_file.h"
#include "executor/tree_walk.h"

namespace berth::executor {

namespace {

std::string parent_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

// Gives one entry if it is the former user's. The owner is asked of the very file that is given, not of its name.
void give_entry(int directory, const char* name, uid_t former, const TaskUser& user) {
  const Descriptor entry(::openat(directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (!entry.is_open() || ::fstat(entry.get(), &status) != 0 || status.st_uid != former) return;
  if (!S_ISDIR(status.st_mode) && status.st_nlink > 1) return;
  (void)!::fchownat(entry.get(), "", user.uid, user.gid, AT_EMPTY_PATH);
}

// What cannot be given is passed over: the task is then told by the file system. Directories that are given already are
// entered, too: an earlier start may have ended half-way.
Result<void> give_tree(int root, uid_t former, const TaskUser& user) {
  TreeVisit visit;
  visit.on_entry = [&](int directory, const char* name) { give_entry(directory, name, former, user); };
  visit.on_left = visit.on_entry;
  visit.enters = [&](int, const struct stat& status) { return status.st_uid == former || status.st_uid == user.uid; };
  return walk_tree(root, visit);
}

}  // namespace

Result<void> make_passage(const std::string& path) {
  if (::mkdir(path.c_str(), 0711) != 0 && errno != EEXIST) return system_error("mkdir", path, errno);
  if (::chmod(path.c_str(), 0711) != 0) return system_error("chmod", path, errno);
  return {};
}

Result<void> give_directory(const std::string& path, const TaskUser& user) {
  if (auto made = make_directories(parent_of(path), 0711); !made) return made;
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return system_error("mkdir", path, errno);
  const Descriptor root(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!root.is_open()) return system_error("enter", path, errno);
  struct stat status {};
  if (::fstat(root.get(), &status) != 0) return system_error("stat", path, errno);
  if (status.st_uid == user.uid) return {};
  if (auto given = give_tree(root.get(), status.st_uid, user); !given)
    return Error{given.error().code, "give " + path + ": " + given.error().message};
  // The root comes last: as long as it is the former user's, what is in it is given once more.
  if (::fchown(root.get(), user.uid, user.gid) != 0) return system_error("chown", path, errno);
  if (::fchmod(root.get(), 0700) != 0) return system_error("chmod", path, errno);
  return {};
}

}  // namespace berth::executor
