#include "backend/local/open_volumes.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <sstream>

#include "backend/local/task_users.h"

namespace berth::backend {

namespace {

constexpr std::array<std::string_view, 7> kOfMachine = {"tmpfs", "ramfs",    "overlay", "btrfs",
                                                        "zfs",   "bcachefs", "rootfs"};

// The kernel writes a blank in a path as \040, and others likewise.
std::string unescaped(const std::string& text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_escape = text[i] == '\\' && i + 3 < text.size();
    plain += is_escape ? static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'))
                       : text[i];
    if (is_escape) i += 3;
  }
  return plain;
}

bool lies_at_or_below(const std::string& path, const std::string& above) {
  if (above == "/") return true;
  return path.starts_with(above) && (path.size() == above.size() || path[above.size()] == '/');
}

// Returns where the line of mountinfo mounts a file server, or "". A disk has a major number.
std::string place_of_file_server(const std::string& line) {
  std::istringstream words(line);
  std::string id, parent, device, root, place, word, kind;
  words >> id >> parent >> device >> root >> place;
  while (words >> word && word != "-") {
  }
  words >> kind;
  const bool is_server =
      device.starts_with("0:") && std::find(kOfMachine.begin(), kOfMachine.end(), kind) == kOfMachine.end();
  return is_server ? unescaped(place) : std::string();
}

std::string parent_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

}  // namespace

std::string path_before_file_servers(const std::string& path, std::string_view mounts) {
  std::istringstream lines{std::string(mounts)};
  std::string before = path;
  for (std::string line; std::getline(lines, line);) {
    const std::string place = place_of_file_server(line);
    if (!place.empty() && lies_at_or_below(before, place)) before = parent_of(place);
  }
  return before;
}

std::vector<std::string> warnings_of_open_volumes(const ClusterConfig& config) {
  std::ifstream file("/proc/self/mountinfo");
  const std::string mounts(std::istreambuf_iterator<char>(file), {});
  std::vector<std::string> warnings;
  const auto look_at = [&](const VolumeConfig& volume, const std::string& queue) {
    if (volume.kind != VolumeKind::kHostPath || (queue.empty() && !volume.read_only)) return;
    const std::string above = path_before_file_servers(parent_of(volume.source), mounts);
    if (!above.empty() && !closed_to_others(above).empty()) return;
    warnings.push_back("volume '" + volume.name + "'" + (queue.empty() ? "" : " of queue '" + queue + "'") +
                       ": every job reaches its host_path by the machine's own path, whatever its queue and read_only "
                       "say; put it below a directory with mode 0700 (docs/data.md)");
  };
  for (const VolumeConfig& volume : config.volumes) look_at(volume, "");
  for (const QueueConfig& queue : config.queues) {
    for (const VolumeConfig& volume : queue.volumes) look_at(volume, queue.path);
  }
  return warnings;
}

}  // namespace berth::backend
