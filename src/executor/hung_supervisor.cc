#include "executor/hung_supervisor.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace berth::executor {

namespace {

bool same_file(const struct stat& one, const struct stat& other) {
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

// Returns true if the open file has a lock of flock(2): the kernel says so in a line of its own.
bool has_flock(pid_t pid, const std::string& descriptor) {
  std::ifstream told("/proc/" + std::to_string(pid) + "/fdinfo/" + descriptor);
  for (std::string line; std::getline(told, line);) {
    if (line.starts_with("lock:") && line.find(" FLOCK ") != std::string::npos) return true;
  }
  return false;
}

bool holds(pid_t pid, const struct stat& lock) {
  std::error_code gone;
  const std::string directory = "/proc/" + std::to_string(pid) + "/fd";
  for (const auto& entry : std::filesystem::directory_iterator(directory, gone)) {
    struct stat open_file {};
    if (::stat(entry.path().c_str(), &open_file) != 0 || !same_file(open_file, lock)) continue;
    if (has_flock(pid, entry.path().filename())) return true;
  }
  return false;
}

}  // namespace

std::vector<ProcessSeen> find_lock_holders(const Descriptor& lock) {
  std::vector<ProcessSeen> holders;
  struct stat file {};
  if (::fstat(lock.get(), &file) != 0) return holders;
  for (const auto& process : see_all_processes()) {
    if (process.pid != ::getpid() && holds(process.pid, file)) holders.push_back(process);
  }
  return holders;
}

bool kill_hung_supervisor(const Descriptor& lock) {
  const auto holders = find_lock_holders(lock);
  const bool alone =
      std::all_of(holders.begin(), holders.end(), [](const ProcessSeen& holder) { return kill_all_below(holder.pid); });
  if (!alone) return false;
  for (const auto& holder : holders) signal_process(holder, SIGKILL);
  return true;
}

}  // namespace berth::executor
