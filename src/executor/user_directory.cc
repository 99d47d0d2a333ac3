#include "executor/user_directory.h"

#include <fts.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "executor/state_file.h"

namespace berth::executor {

namespace {

std::string parent_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

struct CloseTree {
  void operator()(FTS* tree) const { ::fts_close(tree); }
};

// No link is followed. What cannot be given is passed over: the task is then told by the file system.
void give_tree(const std::string& path, const TaskUser& user) {
  std::string root = path;
  char* roots[] = {root.data(), nullptr};
  const std::unique_ptr<FTS, CloseTree> tree(::fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, nullptr));
  if (tree == nullptr) return;
  while (const FTSENT* entry = ::fts_read(tree.get())) {
    if (entry->fts_info == FTS_DP || entry->fts_info == FTS_NS || entry->fts_statp == nullptr) continue;
    if (!S_ISDIR(entry->fts_statp->st_mode) && entry->fts_statp->st_nlink > 1) continue;
    (void)!::lchown(entry->fts_path, user.uid, user.gid);
  }
}

}  // namespace

Result<void> make_passage(const std::string& path) {
  if (::mkdir(path.c_str(), 0711) != 0 && errno != EEXIST) return system_error("mkdir", path, errno);
  if (::chmod(path.c_str(), 0711) != 0) return system_error("chmod", path, errno);
  return {};
}

Result<void> give_directory(const std::string& path, const TaskUser& user) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) {
    if (auto made = make_directories(parent_of(path), 0711); !made) return made;
    if (::mkdir(path.c_str(), 0700) != 0) return system_error("mkdir", path, errno);
    if (::lchown(path.c_str(), user.uid, user.gid) != 0) return system_error("chown", path, errno);
    return {};
  }
  if (!S_ISDIR(status.st_mode)) return system_error("enter", path, ENOTDIR);
  if (status.st_uid == user.uid) return {};
  give_tree(path, user);
  if (::chmod(path.c_str(), 0700) != 0) return system_error("chmod", path, errno);
  return {};
}

}  // namespace berth::executor
