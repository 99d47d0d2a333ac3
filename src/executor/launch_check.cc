#include "executor/launch_check.h"

#include <csignal>
#include <string>

namespace berth::executor {

namespace {

constexpr std::size_t kMostRanks = 256;  // each costs its supervisor two descriptors
constexpr std::int64_t kMostMib = std::int64_t{1} << 40;
constexpr std::int64_t kMostPids = 1 << 22;
constexpr std::int64_t kMostCpuMilli = 1'000'000'000;
constexpr std::int64_t kMostLogBytes = std::int64_t{1} << 50;

bool holds_nul(const std::string& text) { return text.find('\0') != std::string::npos; }

Result<void> check_environment(const Environment& environment) {
  for (const auto& [name, value] : environment) {
    if (name.empty() || name.find('=') != std::string::npos) return invalid("bad variable name '" + name + "'");
    if (holds_nul(name) || holds_nul(value)) return invalid("the variable " + name + " holds a NUL byte");
  }
  return {};
}

Result<void> check_path(const std::string& what, const std::string& path) {
  if (!path.empty() && path.front() != '/') return invalid(what + " must be absolute: " + path);
  if (holds_nul(path)) return invalid(what + " holds a NUL byte");
  return {};
}

Result<void> check_range(const std::string& what, std::int64_t value, std::int64_t most) {
  if (value < 0 || value > most) return invalid(what + " must be 0 to " + std::to_string(most));
  return {};
}

Result<void> check_view(const TaskLaunch& launch) {
  const auto check_place = [](const std::string& what, const std::string& path) -> Result<void> {
    if (path.empty()) return invalid(what + " is empty");
    return check_path(what, path);
  };
  for (const TaskMount& mount : launch.mounts) {
    if (auto checked = check_place("the source of a mount", mount.source); !checked) return checked;
    if (auto checked = check_place("the target of a mount", mount.target); !checked) return checked;
    if (holds_nul(mount.beneath)) return invalid("a path in a mount holds a NUL byte");
  }
  for (const TaskSecrets& secrets : launch.secrets) {
    if (auto checked = check_place("the target of secrets", secrets.target); !checked) return checked;
    for (const auto& [name, source] : secrets.files) {
      if (name.empty() || name.find('/') != std::string::npos || holds_nul(name))
        return invalid("the name of a secret's file is not one");
      if (auto checked = check_place("the source of a secret", source); !checked) return checked;
    }
  }
  return {};
}

}  // namespace

Result<void> check_launch(const TaskLaunch& launch) {
  if (launch.argv.empty() || launch.argv.front().empty()) return invalid("the command is empty");
  for (const auto& argument : launch.argv) {
    if (holds_nul(argument)) return invalid("an argument holds a NUL byte");
  }
  if (launch.rank_env.size() > kMostRanks) return invalid("more than " + std::to_string(kMostRanks) + " ranks");
  if (auto checked = check_environment(launch.env); !checked) return checked;
  for (const auto& environment : launch.rank_env) {
    if (auto checked = check_environment(environment); !checked) return checked;
  }
  if (launch.log_dir.empty()) return invalid("log_dir is empty");
  if (auto checked = check_path("log_dir", launch.log_dir); !checked) return checked;
  if (auto checked = check_path("workdir", launch.workdir); !checked) return checked;
  if (auto checked = check_path("checkpoint_dir", launch.checkpoint_dir); !checked) return checked;
  if (auto checked = check_range("memory_limit_mib", launch.memory_limit_mib, kMostMib); !checked) return checked;
  if (auto checked = check_range("cpu_milli", launch.cpu_milli, kMostCpuMilli); !checked) return checked;
  if (auto checked = check_range("pids_limit", launch.pids_limit, kMostPids); !checked) return checked;
  if (auto checked = check_range("time_limit_ms", launch.time_limit_ms, kLongestMs); !checked) return checked;
  if (auto checked = check_range("grace_ms", launch.grace_ms, kLongestMs); !checked) return checked;
  if (auto checked = check_range("lease_ms", launch.lease_ms, kLongestMs); !checked) return checked;
  if (auto checked = check_range("max_log_bytes", launch.max_log_bytes, kMostLogBytes); !checked) return checked;
  if (auto checked = check_range("log_segments", launch.log_segments, 1000); !checked) return checked;
  if (auto checked = check_range("shm_mib", launch.shm_mib, kMostMib); !checked) return checked;
  if (auto checked = check_view(launch); !checked) return checked;
  if (launch.stop_signal < 1 || launch.stop_signal >= NSIG) {
    return invalid("no signal " + std::to_string(launch.stop_signal));
  }
  return {};
}

}  // namespace berth::executor
