#include "executor/cgroup.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>

#include "executor/descriptor.h"
#include "executor/state_file.h"

namespace berth::executor {

namespace {

constexpr std::int64_t kCpuPeriodUs = 100'000;
constexpr std::int64_t kLeastQuotaUs = 1'000;  // the least quota that the kernel accepts
constexpr std::int64_t kMib = 1 << 20;
constexpr std::string_view kOwnLeaf = "/berth-control";  // the leaf into which this process moves

struct Hierarchy {
  std::string mount_point;
  std::string mount_root;  // what part of the hierarchy is mounted there
  std::vector<std::string> controllers;
  bool unified = false;
};

Result<void> write_control(const std::string& path, const std::string& value) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.is_open()) return system_error("open", path, errno);
  if (::write(file.get(), value.data(), value.size()) < 0) return system_error("write '" + value + "' to", path, errno);
  return {};
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
  return parts;
}

// proc(5), mountinfo: id parent major:minor root mount-point options [optional]... - type source super-options
std::vector<Hierarchy> list_hierarchies() {
  std::vector<Hierarchy> hierarchies;
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    const auto dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    const auto left = split(line.substr(0, dash), ' ');
    const auto right = split(line.substr(dash + 3), ' ');
    if (left.size() < 5 || right.size() < 3 || !right[0].starts_with("cgroup")) continue;
    const bool unified = right[0] == "cgroup2";
    hierarchies.push_back({left[4], left[3], unified ? std::vector<std::string>{} : split(right[2], ','), unified});
  }
  return hierarchies;
}

// The path of this process in a hierarchy, as /proc/self/cgroup has it ("ID:controllers:path", "0::path" for version
// 2).
std::string own_path(const Hierarchy& hierarchy) {
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const auto controllers = split(line.substr(first + 1, second - first - 1), ',');
    const bool same = hierarchy.unified
                          ? controllers.empty()
                          : std::any_of(controllers.begin(), controllers.end(), [&](const std::string& controller) {
                              return std::count(hierarchy.controllers.begin(), hierarchy.controllers.end(), controller);
                            });
    if (same) return line.substr(second + 1);
  }
  return "/";
}

// Returns the directory of this process in a hierarchy. In a container only a part of the hierarchy is mounted, and
// paths outside that part do not exist.
std::string own_directory(const Hierarchy& hierarchy) {
  std::string path = own_path(hierarchy);
  if (hierarchy.mount_root != "/" && path.starts_with(hierarchy.mount_root)) {
    path = path.substr(hierarchy.mount_root.size());
  }
  if (hierarchy.unified && path.ends_with(kOwnLeaf)) path.resize(path.size() - kOwnLeaf.size());
  while (path.ends_with('/')) path.pop_back();
  const std::string directory = hierarchy.mount_point + path;
  return exists(directory) ? directory : hierarchy.mount_point;
}

std::optional<Hierarchy> find_legacy(const std::vector<Hierarchy>& all, const std::string& controller) {
  for (const auto& hierarchy : all) {
    const auto& controllers = hierarchy.controllers;
    if (std::count(controllers.begin(), controllers.end(), controller) > 0) return hierarchy;
  }
  return std::nullopt;
}

std::optional<Hierarchy> find_unified(const std::vector<Hierarchy>& all) {
  for (const auto& hierarchy : all) {
    if (hierarchy.unified) return hierarchy;
  }
  return std::nullopt;
}

bool offers_controller(const std::string& directory, const std::string& controller) {
  std::ifstream file(directory + "/cgroup.controllers");
  for (std::string word; file >> word;) {
    if (word == controller) return true;
  }
  return false;
}

// Creates the directory and checks that a group inside it accepts the limit.
Result<void> try_place(const std::string& place, const std::string& control, const std::string& value) {
  if (::mkdir(place.c_str(), 0755) != 0 && errno != EEXIST) return system_error("mkdir", place, errno);
  const std::string trial = place + "/trial-" + std::to_string(::getpid());
  if (::mkdir(trial.c_str(), 0755) != 0 && errno != EEXIST) return system_error("mkdir", trial, errno);
  auto tried = control.empty() ? Result<void>() : write_control(trial + "/" + control, value);
  ::rmdir(trial.c_str());
  return tried;
}

// In version 2 a group has either processes or children with limits, not both. Enabling the controllers that it still
// allows would turn the group into a threaded group, where no child with limits can be. If this process is alone in its
// group (a service with Delegate=yes), it moves into a leaf. If not, everything stays as it is.
Result<void> step_aside(const std::string& directory) {
  std::ifstream members(directory + "/cgroup.procs");
  std::vector<pid_t> pids;
  for (pid_t pid = 0; members >> pid;) pids.push_back(pid);
  if (pids.empty()) return {};
  if (pids != std::vector<pid_t>{::getpid()}) {
    return Error{ErrorCode::kUnsupported, directory + " holds other processes than this one"};
  }
  const std::string leaf = directory + std::string(kOwnLeaf);
  if (::mkdir(leaf.c_str(), 0755) != 0 && errno != EEXIST) return system_error("mkdir", leaf, errno);
  return write_control(leaf + "/cgroup.procs", "0");
}

Result<void> enable_for_children(const std::string& directory, const std::string& controller) {
  const bool is_root = !exists(directory + "/cgroup.type");  // which may hold both
  if (auto clear = is_root ? Result<void>() : step_aside(directory); !clear) return clear;
  return write_control(directory + "/cgroup.subtree_control", "+" + controller);
}

struct Controller {
  std::string name;
  std::string legacy_control, legacy_value;
  std::string unified_control, unified_value;
};

Result<std::string> find_place(const std::vector<Hierarchy>& all, const Controller& controller,
                               const std::string& name) {
  if (const auto legacy = find_legacy(all, controller.name)) {
    const std::string place = own_directory(*legacy) + "/" + name;
    if (auto tried = try_place(place, controller.legacy_control, controller.legacy_value); !tried) return tried.error();
    return place;
  }
  const auto unified = find_unified(all);
  if (!unified) return not_found("no cgroup hierarchy is mounted");
  const std::string own = own_directory(*unified);
  if (!offers_controller(own, controller.name))
    return not_found(own + " does not offer the " + controller.name + " controller");
  if (auto enabled = enable_for_children(own, controller.name); !enabled) return enabled.error();
  const std::string place = own + "/" + name;
  if (::mkdir(place.c_str(), 0755) != 0 && errno != EEXIST) return system_error("mkdir", place, errno);
  if (auto enabled = write_control(place + "/cgroup.subtree_control", "+" + controller.name); !enabled) {
    return enabled.error();
  }
  if (auto tried = try_place(place, controller.unified_control, controller.unified_value); !tried) return tried.error();
  return place;
}

Result<void> limit_memory(const std::string& directory, std::int64_t mib) {
  const std::string bytes = std::to_string(mib * kMib);
  if (exists(directory + "/memory.max")) {
    auto limited = write_control(directory + "/memory.max", bytes);
    if (limited && exists(directory + "/memory.swap.max")) return write_control(directory + "/memory.swap.max", "0");
    return limited;
  }
  auto limited = write_control(directory + "/memory.limit_in_bytes", bytes);
  const std::string with_swap = directory + "/memory.memsw.limit_in_bytes";
  if (limited && exists(with_swap)) return write_control(with_swap, bytes);
  return limited;
}

Result<void> limit_cpu(const std::string& directory, std::int64_t milli) {
  const std::string quota = std::to_string(std::max(milli * kCpuPeriodUs / 1000, kLeastQuotaUs));
  const std::string period = std::to_string(kCpuPeriodUs);
  if (exists(directory + "/cpu.max")) return write_control(directory + "/cpu.max", quota + " " + period);
  if (auto set = write_control(directory + "/cpu.cfs_period_us", period); !set) return set;
  return write_control(directory + "/cpu.cfs_quota_us", quota);
}

Result<void> limit_pids(const std::string& directory, std::int64_t pids) {
  return write_control(directory + "/pids.max", std::to_string(pids));
}

bool controls_memory(const std::string& directory) {
  return exists(directory + "/memory.max") || exists(directory + "/memory.limit_in_bytes");
}

bool controls_cpu(const std::string& directory) {
  return exists(directory + "/cpu.max") || exists(directory + "/cpu.cfs_quota_us");
}

Error no_limit(const std::string& what, const std::string& why) {
  return {ErrorCode::kUnsupported, "the " + what + " limit is not enforced: " + why};
}

// The number behind `key` in a file of "key number" lines; 0 where there is none.
std::int64_t read_counter(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  std::string word;
  for (std::int64_t number = 0; file >> word >> number;) {
    if (word == key) return number;
  }
  return 0;
}

}  // namespace

CgroupProbe probe_cgroups(const std::string& name) {
  const Controller memory{"memory", "memory.limit_in_bytes", "67108864", "memory.max", "67108864"};
  const Controller cpu{"cpu", "cpu.cfs_quota_us", "100000", "cpu.max", "100000 100000"};
  const Controller pids{"pids", "pids.max", "1024", "pids.max", "1024"};
  const auto hierarchies = list_hierarchies();
  CgroupProbe probe;
  const auto look = [&](const Controller& controller, std::string& place) {
    auto found = find_place(hierarchies, controller, name);
    if (found) {
      place = *found;
    } else {
      probe.warnings.push_back(no_limit(controller.name, found.error().message).message);
    }
  };
  look(memory, probe.places.memory);
  look(cpu, probe.places.cpu);
  look(pids, probe.places.pids);
  if (const auto unified = find_unified(hierarchies)) {
    const std::string place = own_directory(*unified) + "/" + name;
    const auto& places = probe.places;
    const bool used = place == places.memory || place == places.cpu || place == places.pids;
    if (!used && try_place(place, "", "")) probe.places.tracking = place;
  }
  return probe;
}

std::int64_t default_pids_limit() {
  constexpr std::int64_t kMost = 16'384;
  constexpr std::int64_t kLeast = 64;
  std::vector<std::string> files{"/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max"};
  for (const auto& hierarchy : list_hierarchies()) {
    const auto& controllers = hierarchy.controllers;
    const bool counts = hierarchy.unified || std::count(controllers.begin(), controllers.end(), "pids") > 0;
    if (counts) files.push_back(own_directory(hierarchy) + "/pids.max");
  }
  std::int64_t all = kMost * 4;
  for (const auto& name : files) {
    std::ifstream file(name);
    std::int64_t number = 0;
    if (file >> number && number > 0) all = std::min(all, number);  // "max" is no number
  }
  return std::clamp(all / 4, kLeast, kMost);
}

void remove_cgroup_places(const CgroupPlaces& places) {
  for (const auto& place : {places.memory, places.cpu, places.pids, places.tracking}) {
    if (!place.empty()) ::rmdir(place.c_str());
  }
}

TaskCgroups name_task_cgroups(const CgroupPlaces& places, const std::string& task) {
  TaskCgroups cgroups;
  for (const auto& place : {places.tracking, places.memory, places.cpu, places.pids}) {
    const std::string directory = place + "/" + task;
    const auto& known = cgroups.directories;
    if (place.empty() || std::count(known.begin(), known.end(), directory) > 0) continue;
    cgroups.directories.push_back(directory);
  }
  return cgroups;
}

Result<void> make_task_cgroups(const TaskCgroups& cgroups, const CgroupLimits& limits) {
  std::string memory_problem = "this machine has no place for it";
  std::string cpu_problem = memory_problem;
  std::string pids_problem = memory_problem;
  for (const auto& directory : cgroups.directories) {
    if (::mkdir(directory.c_str(), 0755) != 0 && errno != EEXIST) {
      memory_problem = cpu_problem = pids_problem = system_error("mkdir", directory, errno).message;
      continue;
    }
    if (limits.memory_mib > 0 && controls_memory(directory)) {
      const auto limited = limit_memory(directory, limits.memory_mib);
      memory_problem = limited ? "" : limited.error().message;
    }
    if (limits.cpu_milli > 0 && controls_cpu(directory)) {
      const auto limited = limit_cpu(directory, limits.cpu_milli);
      cpu_problem = limited ? "" : limited.error().message;
    }
    if (limits.pids > 0 && exists(directory + "/pids.max")) {
      const auto limited = limit_pids(directory, limits.pids);
      pids_problem = limited ? "" : limited.error().message;
    }
  }
  if (limits.memory_mib > 0 && !memory_problem.empty()) return no_limit("memory", memory_problem);
  if (limits.cpu_milli > 0 && !cpu_problem.empty()) return no_limit("cpu", cpu_problem);
  if (limits.pids > 0 && !pids_problem.empty()) return no_limit("pids", pids_problem);
  return {};
}

void join_cgroups(const TaskCgroups& cgroups) {
  for (const auto& directory : cgroups.directories) (void)write_control(directory + "/cgroup.procs", "0");
}

std::vector<pid_t> list_cgroup_members(const TaskCgroups& cgroups) {
  std::vector<pid_t> pids;
  for (const auto& directory : cgroups.directories) {
    std::ifstream members(directory + "/cgroup.procs");
    for (pid_t pid = 0; members >> pid;) {
      if (pid > 0) pids.push_back(pid);  // 0 is how a process outside our pid namespace shows
    }
  }
  std::sort(pids.begin(), pids.end());
  pids.erase(std::unique(pids.begin(), pids.end()), pids.end());
  return pids;
}

void kill_cgroup_members(const TaskCgroups& cgroups) {
  for (const auto& directory : cgroups.directories) {
    const std::string control = directory + "/cgroup.kill";
    if (exists(control) && write_control(control, "1")) return;
  }
  for (const pid_t pid : list_cgroup_members(cgroups)) ::kill(pid, SIGKILL);
}

std::int64_t count_memory_kills(const TaskCgroups& cgroups) {
  std::int64_t kills = 0;
  for (const auto& directory : cgroups.directories) {
    kills += read_counter(directory + "/memory.events", "oom_kill");
    kills += read_counter(directory + "/memory.oom_control", "oom_kill");
  }
  return kills;
}

bool remove_task_cgroups(const TaskCgroups& cgroups) {
  bool gone = true;
  for (const auto& directory : cgroups.directories) {
    if (::rmdir(directory.c_str()) != 0 && errno != ENOENT) gone = false;
  }
  return gone;
}

}  // namespace berth::executor
