#pragma once
// Processes of this machine as /proc shows them. A pid alone names nobody, because pids are used again: a process is
// named by its pid and the tick of the boot clock at which it started.

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::executor {

struct ProcessSeen {
  pid_t pid = 0;
  std::uint64_t start_ticks = 0;
  pid_t parent = 0;
  pid_t session = 0;
  char state = '?';  // 'Z' and 'X' are dead
};

std::optional<ProcessSeen> see_process(pid_t pid);
std::vector<ProcessSeen> see_all_processes();

// Everything below `root`, without root itself and without the dead.
std::vector<ProcessSeen> descendants_of(pid_t root, const std::vector<ProcessSeen>& all);

// Signals exactly that process: nothing when the pid has meanwhile become somebody else.
void signal_process(const ProcessSeen& process, int signo);

// Does its environment, as it was at exec, hold `entry` ("NAME=value")? False where it may not be read.
bool has_environment_entry(pid_t pid, std::string_view entry);

// As exec wants its arguments and its environment: a pointer to each, then a null.
std::vector<char*> pointers_to(std::vector<std::string>& strings);

// Changes with every boot: what was written under another boot id is about processes that no longer exist.
std::string boot_id();

// Milliseconds since boot, counting suspend. Nobody sets this clock.
std::int64_t boot_clock_ms();

// Milliseconds since the Unix epoch.
std::int64_t wall_clock_ms();

}  // namespace berth::executor
