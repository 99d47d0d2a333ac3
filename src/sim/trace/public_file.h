#pragma once
// The place of the public traces for tests. They are not part of the repository.

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace berth::sim {

// Returns the path of the file in $BERTH_TRACES or ../shared/traces. If the file is absent, it prints SKIPPED and
// returns "".
inline std::string public_file(const std::string& path) {
  const char* folder = std::getenv("BERTH_TRACES");
  const std::string file = std::string(folder == nullptr ? "../shared/traces" : folder) + "/" + path;
  if (std::filesystem::exists(file)) return file;
  MESSAGE("SKIPPED, because the public trace is absent: " << file << " (set BERTH_TRACES to the folder of traces)");
  return {};
}

}  // namespace berth::sim
