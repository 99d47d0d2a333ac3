#pragma once
// Control groups, version 1, 2 and both at once (hybrid). The executor finds out once, by trying, what the machine
// allows. Each supervisor then makes the groups of its task below the directories found. A group limits memory, CPU and
// processes, shows the kernel's out-of-memory kills, and lists every process of the task; no process can leave it.

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace berth::executor {

// Directories for the groups of tasks; empty if the machine does not allow such groups.
struct CgroupPlaces {
  std::string memory;
  std::string cpu;
  std::string pids;
  std::string tracking;  // version 2 without controllers, for listing and killing
};

struct CgroupProbe {
  CgroupPlaces places;
  std::vector<std::string> warnings;
};

// Finds where this process may make groups. Creates the directory `name` there.
CgroupProbe probe_cgroups(const std::string& name);

// Removes the directories of probe_cgroups if they are empty.
void remove_cgroup_places(const CgroupPlaces& places);

struct CgroupLimits {
  std::int64_t memory_mib = 0;  // 0: none
  std::int64_t cpu_milli = 0;   // 0: none
  std::int64_t pids = 0;        // processes and threads; 0: none
};

// The groups of one task, at most one per hierarchy. Their names suffice, so that another process can continue with
// them.
struct TaskCgroups {
  std::vector<std::string> directories;
};

// Returns the names of the groups of a task. They are known before the groups exist, so that they can be written down
// first.
TaskCgroups name_task_cgroups(const CgroupPlaces& places, const std::string& task);

// Returns how many processes and threads one task may have on this machine: a quarter of what the machine allows, or
// this process in its own group; at most 16384 and at least 64.
std::int64_t default_pids_limit();

// Makes the groups and sets the limits. An error says which limit does not work; the groups that could be made stay in
// use.
Result<void> make_task_cgroups(const TaskCgroups& cgroups, const CgroupLimits& limits);

void join_cgroups(const TaskCgroups& cgroups);  // moves the calling process, and its later children
std::vector<pid_t> list_cgroup_members(const TaskCgroups& cgroups);
void kill_cgroup_members(const TaskCgroups& cgroups);
std::int64_t count_memory_kills(const TaskCgroups& cgroups);
bool remove_task_cgroups(
    const TaskCgroups& cgroups);  // returns false if the kernel still uses one; it may be tried again

}  // namespace berth::executor
