#pragma once
// State files: small files by which the executor and its supervisors inform each other. A state file is replaced
// completely or not at all, and is on disk when replace_state_file returns.

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::executor {

// Returns an error such as "open /a/b: No such file or directory": kNotFound for ENOENT, else kIo.
Error system_error(std::string_view action, std::string_view path, int error_number);

// Writes a temporary file beside `path`, syncs it, renames it over `path` and syncs the directory. Mode 0600.
Result<void> replace_state_file(const std::string& path, std::string_view bytes);

// Error kNotFound: no such file. Error kTooLarge: more than `limit` bytes. It follows no symbolic link and reads only
// regular files, so a job cannot make its supervisor read a device, a pipe or a file of another user.
// With `owner`, a file of another user is an error.
Result<std::string> read_state_file(const std::string& path, std::size_t limit, std::optional<uid_t> owner = {});

bool exists(const std::string& path);

Result<void> sync_directory(const std::string& path);

// Creates `path` and its missing parents with `mode`. Existing directories are not changed.
Result<void> make_directories(const std::string& path, unsigned mode);

}  // namespace berth::executor
