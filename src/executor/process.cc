#include "executor/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <ctime>
#include <set>
#include <sstream>

#include "executor/descriptor.h"

namespace berth::executor {

namespace {

// /proc files have no size to ask for; they are read to their end.
std::string read_proc_file(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string bytes;
  char buffer[4096];
  while (file.is_open()) {
    const ssize_t count = ::read(file.get(), buffer, sizeof buffer);
    if (count <= 0) break;
    bytes.append(buffer, static_cast<std::size_t>(count));
  }
  return bytes;
}

std::int64_t clock_ms(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000;
}

bool is_dead(const ProcessSeen& process) { return process.state == 'Z' || process.state == 'X'; }

}  // namespace

std::optional<ProcessSeen> see_process(pid_t pid) {
  const std::string stat = read_proc_file("/proc/" + std::to_string(pid) + "/stat");
  // The command name is in parentheses and may hold anything, parentheses too: fields are counted from the last one.
  const auto name_end = stat.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(stat.substr(name_end + 1));
  ProcessSeen seen;
  seen.pid = pid;
  pid_t group = 0;
  fields >> seen.state >> seen.parent >> group >> seen.session;
  std::string skipped;
  for (int field = 7; field < 22; ++field) fields >> skipped;
  fields >> seen.start_ticks;
  if (!fields) return std::nullopt;
  return seen;
}

bool has_given_back_its_memory(pid_t pid) {
  const std::string statm = read_proc_file("/proc/" + std::to_string(pid) + "/statm");
  return statm.empty() || statm.starts_with("0 ");
}

std::vector<ProcessSeen> see_all_processes() {
  std::vector<ProcessSeen> all;
  DIR* proc = ::opendir("/proc");
  if (proc == nullptr) return all;
  while (const dirent* entry = ::readdir(proc)) {
    const std::string_view name = entry->d_name;
    pid_t pid = 0;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (parsed.ec != std::errc() || parsed.ptr != name.data() + name.size()) continue;
    if (auto seen = see_process(pid)) all.push_back(*seen);
  }
  ::closedir(proc);
  return all;
}

std::vector<ProcessSeen> descendants_of(pid_t root, const std::vector<ProcessSeen>& all) {
  std::set<pid_t> tree{root};
  // Parents may come after their children in the list, so it is read until a pass adds no process.
  for (bool grew = true; grew;) {
    grew = false;
    for (const auto& process : all) {
      if (tree.contains(process.parent) && tree.insert(process.pid).second) grew = true;
    }
  }
  std::vector<ProcessSeen> below;
  for (const auto& process : all) {
    if (process.pid != root && tree.contains(process.pid) && !is_dead(process)) below.push_back(process);
  }
  return below;
}

std::vector<pid_t> children_of(pid_t pid) {
  const std::string process = std::to_string(pid);
  std::istringstream listed(read_proc_file("/proc/" + process + "/task/" + process + "/children"));
  std::vector<pid_t> children;
  for (pid_t child = 0; listed >> child;) children.push_back(child);
  return children;
}

// A look at all processes is slow: a process that forks and exits at once passes between two entries of /proc. The list
// of children is read in microseconds, and each such process comes up in it.
bool kill_all_below(pid_t root) {
  constexpr int kTurns = 200;
  for (const auto& process : descendants_of(root, see_all_processes())) signal_process(process, SIGKILL);
  for (int turn = 0; turn < kTurns; ++turn) {
    bool any = false;
    for (const pid_t child : children_of(root)) {
      const auto seen = see_process(child);
      if (!seen || seen->parent != root || is_dead(*seen)) continue;
      signal_process(*seen, SIGKILL);
      any = true;
    }
    if (!any && descendants_of(root, see_all_processes()).empty()) return true;
  }
  return false;
}

void signal_process(const ProcessSeen& process, int signo) {
  // The handle pins the process that has the pid now; the start time then shows whether it is the right one.
  const Descriptor handle(static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0)));
  const auto now = see_process(process.pid);
  if (!now || now->start_ticks != process.start_ticks) return;
  if (handle.is_open()) {
    ::syscall(SYS_pidfd_send_signal, handle.get(), signo, nullptr, 0);
  } else if (errno == ENOSYS) {
    ::kill(process.pid, signo);
  }
}

namespace {

template <class Matches>
bool any_environment_entry(pid_t pid, const Matches& matches) {
  const std::string environment = read_proc_file("/proc/" + std::to_string(pid) + "/environ");
  for (std::size_t begin = 0; begin < environment.size();) {
    const std::size_t end = std::min(environment.find('\0', begin), environment.size());
    if (matches(std::string_view(environment).substr(begin, end - begin))) return true;
    begin = end + 1;
  }
  return false;
}

}  // namespace

std::vector<char*> pointers_to(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (auto& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

bool has_environment_entry(pid_t pid, std::string_view entry) {
  return any_environment_entry(pid, [&](std::string_view one) { return one == entry; });
}

bool has_environment_variable(pid_t pid, std::string_view name) {
  return any_environment_entry(
      pid, [&](std::string_view one) { return one.starts_with(name) && one.substr(name.size()).starts_with('='); });
}

std::vector<std::string> environment_values(pid_t pid, std::string_view name) {
  std::vector<std::string> values;
  any_environment_entry(pid, [&](std::string_view one) {
    if (one.starts_with(name) && one.substr(name.size()).starts_with('='))
      values.emplace_back(one.substr(name.size() + 1));
    return false;
  });
  return values;
}

std::string boot_id() {
  std::string id = read_proc_file("/proc/sys/kernel/random/boot_id");
  while (!id.empty() && id.back() == '\n') id.pop_back();
  return id;
}

std::int64_t boot_clock_ms() { return clock_ms(CLOCK_BOOTTIME); }

std::int64_t wall_clock_ms() { return clock_ms(CLOCK_REALTIME); }

}  // namespace berth::executor
