#pragma once
// Where tests find the public traces, which are not part of the repository.

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace berth::sim {

// $BERTH_TRACES, else ../shared/traces beside the repository; empty, and said out loud, if the file is not there.
inline std::string public_file(const std::string& path) {
  const char* folder = std::getenv("BERTH_TRACES");
  const std::string file = std::string(folder == nullptr ? "../shared/traces" : folder) + "/" + path;
  if (std::filesystem::exists(file)) return file;
  MESSAGE("SKIPPED, because the public trace is absent: " << file << " (set BERTH_TRACES to the folder of traces)");
  return {};
}

}  // namespace berth::sim
