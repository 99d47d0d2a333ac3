#pragma once
// Control groups, version 1, 2 and both at once (hybrid). What the machine allows is found out by trying, once, by the
// executor; each supervisor then makes the groups of its task below the places found. A group limits memory and CPU,
// tells of the kernel's out-of-memory kills, and lists every process of the task whatever it did to escape.

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace berth::executor {

// Directories under which a task's own groups are made; empty where the machine does not allow it.
struct CgroupPlaces {
  std::string memory;
  std::string cpu;
  std::string tracking;  // version 2 without controllers, for listing and killing
};

struct CgroupProbe {
  CgroupPlaces places;
  std::vector<std::string> warnings;
};

// Finds where this process may make groups, and leaves the directory `name` there.
CgroupProbe probe_cgroups(const std::string& name);

// Removes what probe_cgroups made, as far as it is empty.
void remove_cgroup_places(const CgroupPlaces& places);

struct CgroupLimits {
  std::int64_t memory_mib = 0;  // 0: none
  std::int64_t cpu_milli = 0;   // 0: none
};

// The groups of one task, at most one per hierarchy. Their names are all there is to know, so that another process can
// go on.
struct TaskCgroups {
  std::vector<std::string> directories;
};

// Where a task's groups will be: known before they are made, so that it can be written down first.
TaskCgroups name_task_cgroups(const CgroupPlaces& places, const std::string& task);

// Makes them and sets the limits. An error says which limit will not hold; what could be made stays in use.
Result<void> make_task_cgroups(const TaskCgroups& cgroups, const CgroupLimits& limits);

void join_cgroups(const TaskCgroups& cgroups);  // the calling process, and its children from then on
std::vector<pid_t> list_cgroup_members(const TaskCgroups& cgroups);
void kill_cgroup_members(const TaskCgroups& cgroups);
std::int64_t count_memory_kills(const TaskCgroups& cgroups);
bool remove_task_cgroups(const TaskCgroups& cgroups);  // false: the kernel still holds one; it may be tried again

}  // namespace berth::executor
