#pragma once
// The bytes of a file, unpacked if they are gzip. Both sizes are limited: a small file can unpack to anything.

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::sim {

Result<std::string> read_file(const std::string& path, std::size_t max_bytes);

bool is_gzip(std::string_view bytes);

// Returns all members of a gzip file, one after the other. A cut or damaged file is an error; a shorter text is never
// returned.
Result<std::string> unpack_gzip(const std::string& name, std::string_view bytes, std::size_t max_bytes);

}  // namespace berth::sim
