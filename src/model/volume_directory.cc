#include "model/volume_directory.h"

#include <array>
#include <cstdio>

#include "base/hash.h"

namespace berth {

std::string mark_of_log(std::string_view log) {
  std::array<char, 9> text{};
  std::snprintf(text.data(), text.size(), "%08x", static_cast<unsigned>(Hasher().add(log).digest() & 0xffffffffU));
  return text.data();
}

std::string directory_in_volume(const TaskVolume& mount, JobId job, std::string_view log) {
  if (!mount.of_job) return mount.beneath;
  return "job-" + mark_of_log(log) + "-" + std::to_string(job.value()) + "/" + mount.beneath;
}

}  // namespace berth
