#pragma once
// Walks a directory tree that other users may change meanwhile, as the directories of jobs are. A name is looked up
// only in a directory that is open, and no link is followed, so nothing outside of the tree is ever reached by a link
// that was put in the place of a directory. One directory is open at a time besides the root, however deep the tree is.

#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"

namespace berth::executor {

struct TreeVisit {
  // Each entry that is no directory, and each directory that is not entered; `directory` is open and holds the name.
  std::function<void(int directory, const char* name)> on_entry = {};
  // Returns true if the directory, which is open, is to be entered. Absent: each one is.
  std::function<bool(int directory, const struct stat& status)> enters = {};
  // Each directory below the root, once everything in it was visited; `parent` is open and holds the name.
  std::function<void(int parent, const char* name)> on_left = {};
};

// Visits everything below the open directory `root`, which stays open, but not itself. Directories of another file
// system are not entered. Error kUnavailable: a directory that was entered has been moved meanwhile, so the walk ended.
Result<void> walk_tree(int root, const TreeVisit& visit);

// Removes the directory and everything in it. A path that is not there is no error. Requires: no other user may write
// the parent.
Result<void> remove_tree(const std::string& path);

// Returns the bytes on disk of everything below the directory.
std::int64_t bytes_below(const std::string& path);

}  // namespace berth::executor
