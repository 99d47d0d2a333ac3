#include "executor/task_process.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <string>

#include "executor/process.h"

namespace berth::executor {

namespace {

constexpr std::string_view kPlacePrefix = "berth-";
constexpr std::size_t kPlaceDigits = 16;
constexpr std::string_view kSupervisorName = "berth-supervise";
constexpr int kMostAncestors = 10'000;
constexpr int kLooks = 3;

std::string proc_text(pid_t pid, const char* file) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/" + file);
  std::string text;
  for (std::string line; std::getline(in, line);) text += line + "\n";
  return text;
}

bool is_in_task_cgroup(const std::string& groups) {
  for (std::size_t begin = 0; begin < groups.size();) {
    const std::size_t end = std::min(groups.find('\n', begin), groups.size());
    if (is_task_cgroup(std::string_view(groups).substr(begin, end - begin))) return true;
    begin = end + 1;
  }
  return false;
}

// Nothing if one on the way ended meanwhile.
std::optional<bool> is_below_supervisor(pid_t pid) {
  for (int depth = 0; depth < kMostAncestors && pid > 0; ++depth) {
    const auto seen = see_process(pid);
    if (!seen) return std::nullopt;
    std::string name = proc_text(pid, "comm");
    if (!name.empty()) name.pop_back();
    if (name == kSupervisorName) return true;
    if (pid == 1) return false;
    pid = seen->parent;
  }
  return false;
}

}  // namespace

bool is_task_cgroup(std::string_view line) {
  for (std::size_t at = line.find(kPlacePrefix); at != std::string_view::npos; at = line.find(kPlacePrefix, at + 1)) {
    if (at == 0 || line[at - 1] != '/') continue;
    const std::string_view digits = line.substr(at + kPlacePrefix.size(), kPlaceDigits);
    const std::string_view rest = line.substr(at + kPlacePrefix.size() + digits.size());
    const bool named =
        digits.size() == kPlaceDigits && digits.find_first_not_of("0123456789abcdef") == std::string_view::npos;
    if (named && (rest.empty() || rest.front() == '/')) return true;
  }
  return false;
}

std::optional<bool> belongs_to_task(pid_t pid) {
  const std::string groups = proc_text(pid, "cgroup");
  if (groups.empty()) return std::nullopt;
  if (is_in_task_cgroup(groups)) return true;
  for (int look = 0; look < kLooks; ++look) {
    if (const auto below = is_below_supervisor(pid)) return below;
  }
  return std::nullopt;
}

}  // namespace berth::executor
