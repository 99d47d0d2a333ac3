#include "executor/tree_walk.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "executor/descriptor.h"
#include "executor/state_file.h"

namespace berth::executor {

namespace {

constexpr int kOpenDirectory = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;

// A directory on the way from the root to the open one.
struct Level {
  dev_t device = 0;
  ino_t inode = 0;
  std::string name = {};                         // in the level above
  std::vector<std::string> subdirectories = {};  // still to be entered
};

class Walk {
 public:
  Walk(int root, const TreeVisit& visit) : root_(root), visit_(visit) {}

  Result<void> run() {
    struct stat status {};
    Descriptor top(::openat(root_, ".", kOpenDirectory));
    if (!top.is_open() || ::fstat(top.get(), &status) != 0) return system_error("open", "a directory", errno);
    device_ = status.st_dev;
    stand_in(std::move(top), status, "");
    while (!way_.empty()) {
      if (way_.back().subdirectories.empty()) {
        if (auto left = leave(); !left) return left;
        continue;
      }
      const std::string name = std::move(way_.back().subdirectories.back());
      way_.back().subdirectories.pop_back();
      enter(name);
    }
    return {};
  }

 private:
  void stand_in(Descriptor directory, const struct stat& status, const std::string& name) {
    here_ = std::move(directory);
    way_.push_back({status.st_dev, status.st_ino, name, {}});
    read_names();
  }

  // Entries that may be directories are kept for later; the others are visited. They are all read first, because a
  // visit may remove them.
  void read_names() {
    const int own = ::openat(here_.get(), ".", kOpenDirectory);
    DIR* entries = own < 0 ? nullptr : ::fdopendir(own);
    if (entries == nullptr) {
      if (own >= 0) ::close(own);
      return;
    }
    std::vector<std::string> others;
    while (const dirent* entry = ::readdir(entries)) {
      const char* const name = static_cast<const char*>(entry->d_name);
      if (std::strcmp(name, ".") == 0 || std::strcmp(name, "..") == 0) continue;
      const bool may_be_directory = entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN;
      (may_be_directory ? way_.back().subdirectories : others).emplace_back(name);
    }
    ::closedir(entries);
    for (const std::string& name : others) visit_entry(name);
  }

  void visit_entry(const std::string& name) {
    if (visit_.on_entry) visit_.on_entry(here_.get(), name.c_str());
  }

  void enter(const std::string& name) {
    struct stat status {};
    Descriptor directory(::openat(here_.get(), name.c_str(), kOpenDirectory));
    const bool is_open = directory.is_open() && ::fstat(directory.get(), &status) == 0;
    if (!is_open || status.st_dev != device_ || (visit_.enters && !visit_.enters(directory.get(), status)))
      return visit_entry(name);
    stand_in(std::move(directory), status, name);
  }

  Result<void> leave() {
    const Level left = std::move(way_.back());
    way_.pop_back();
    if (way_.empty()) return {};
    Descriptor above(::openat(here_.get(), "..", kOpenDirectory));
    struct stat status {};
    const bool is_open = above.is_open() && ::fstat(above.get(), &status) == 0;
    if (!is_open || status.st_dev != way_.back().device || status.st_ino != way_.back().inode)
      return Error{ErrorCode::kUnavailable, "directory " + left.name + " was moved meanwhile"};
    here_ = std::move(above);
    if (visit_.on_left) visit_.on_left(here_.get(), left.name.c_str());
    return {};
  }

  int root_;
  const TreeVisit& visit_;
  dev_t device_ = 0;
  Descriptor here_;
  std::vector<Level> way_;
};

}  // namespace

Result<void> walk_tree(int root, const TreeVisit& visit) { return Walk(root, visit).run(); }

Result<void> remove_tree(const std::string& path) {
  const Descriptor root(::open(path.c_str(), kOpenDirectory));
  if (!root.is_open()) {
    if (errno == ENOENT) return {};
    if (errno != ENOTDIR && errno != ELOOP) return system_error("open", path, errno);
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) return system_error("remove", path, errno);
    return {};
  }
  TreeVisit visit;
  visit.on_entry = [](int directory, const char* name) {
    if (::unlinkat(directory, name, 0) != 0 && errno == EISDIR) ::unlinkat(directory, name, AT_REMOVEDIR);
  };
  visit.on_left = [](int parent, const char* name) { ::unlinkat(parent, name, AT_REMOVEDIR); };
  if (auto walked = walk_tree(root.get(), visit); !walked) return walked;
  if (::rmdir(path.c_str()) != 0 && errno != ENOENT) return system_error("remove", path, errno);
  return {};
}

std::int64_t bytes_below(const std::string& path) {
  const Descriptor root(::open(path.c_str(), kOpenDirectory));
  if (!root.is_open()) return 0;
  std::int64_t bytes = 0;
  const auto add = [&bytes](const struct stat& status) { bytes += std::int64_t{status.st_blocks} * 512; };
  TreeVisit visit;
  visit.on_entry = [&](int directory, const char* name) {
    struct stat status {};
    if (::fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0) add(status);
  };
  visit.enters = [&](int, const struct stat& status) {
    add(status);
    return true;
  };
  (void)walk_tree(root.get(), visit).has_value();
  return bytes;
}

}  // namespace berth::executor
