#pragma once
// The small files that the executor and its supervisors tell each other things with. A state file is replaced as a
// whole or not at all, and is on disk when replace_state_file returns.

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::executor {

// "open /a/b: No such file or directory", as kNotFound for ENOENT and kIo for the rest.
Error system_error(std::string_view action, std::string_view path, int error_number);

// Writes a temporary file beside `path`, syncs it, renames it over `path` and syncs the directory. Mode 0600.
Result<void> replace_state_file(const std::string& path, std::string_view bytes);

// kNotFound where there is none; kTooLarge above `limit` bytes. Follows no symbolic link and reads regular files only,
// so that a job cannot make its supervisor read a device, a pipe or somebody else's file.
Result<std::string> read_state_file(const std::string& path, std::size_t limit);

bool exists(const std::string& path);

Result<void> sync_directory(const std::string& path);

// Makes `path` and what is missing above it. What is made gets `mode`; what is there is left alone.
Result<void> make_directories(const std::string& path, unsigned mode);

}  // namespace berth::executor
