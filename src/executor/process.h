#pragma once
// Processes of this machine as /proc shows them. A pid alone does not identify a process, because pids are used again.
// The pid and the start tick of the boot clock do.

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

// Returns true if the process ends or has ended: it has no memory and no environment any more. The kernel closes its
// files, and so what a driver keeps for it, only after that.
bool has_given_back_its_memory(pid_t pid);
std::vector<ProcessSeen> see_all_processes();

// Returns all descendants of `root`, without root itself and without dead processes.
std::vector<ProcessSeen> descendants_of(pid_t root, const std::vector<ProcessSeen>& all);

// Returns the children of the process, dead ones that it has not reaped included. Empty where the kernel does not list
// them.
std::vector<pid_t> children_of(pid_t pid);

// Kills everything below `root` and returns true if nothing is left. Requires: `root` is a subreaper that reaps nothing
// meanwhile, so that whatever loses its parent becomes a child of `root`. May be called again until it returns true.
bool kill_all_below(pid_t root);

// Sends the signal to exactly this process. Does nothing if another process has the pid by now.
void signal_process(const ProcessSeen& process, int signo);

// Returns true if its environment at exec had `entry` ("NAME=value"). Returns false if it may not be read.
bool has_environment_entry(pid_t pid, std::string_view entry);

// Returns what its environment at exec had for the variable: several values if it is there several times, none if it
// may not be read.
std::vector<std::string> environment_values(pid_t pid, std::string_view name);

// Returns a pointer to each string and then a null, as exec wants its arguments and its environment.
std::vector<char*> pointers_to(std::vector<std::string>& strings);

// Returns true if its environment at exec had the variable. Returns false if it may not be read.
bool has_environment_variable(pid_t pid, std::string_view name);

// Returns an id that changes with each boot. Records with another boot id are about processes that no longer exist.
std::string boot_id();

// Returns milliseconds since boot, suspended time included. This clock is never set.
std::int64_t boot_clock_ms();

// Returns milliseconds since the Unix epoch.
std::int64_t wall_clock_ms();

}  // namespace berth::executor
