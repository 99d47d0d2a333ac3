#pragma once
// Directories of the user that a task runs as, below directories of the server.

#include <string>

#include "base/result.h"
#include "executor/task.h"

namespace berth::executor {

// Creates the directory, or sets the mode of an existing one, so that everybody may pass through it and nobody but its
// owner may list or change it. Requires: its parents exist.
Result<void> make_passage(const std::string& path);

// Creates the directory for the user alone (mode 0700), with missing parents that everybody may pass. If it exists, its
// user may have changed since: then it and what is in it of the former user is given to the user. Nothing of any third
// user is given, and no link is followed, whatever processes of the former user do meanwhile. Files that have another
// name elsewhere are left out, since a link to a file of root could be among them. Requires: this process is root, and
// no other user may write the parent. Error kUnavailable: something was moved meanwhile; another try may succeed.
Result<void> give_directory(const std::string& path, const TaskUser& user);

}  // namespace berth::executor
