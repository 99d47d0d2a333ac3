#include "executor/orphans.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <optional>
#include <set>
#include <vector>

#include "executor/record.h"

namespace berth::executor {

namespace {

// The kernel does not reuse a pid that is still the number of a session. If the pid of the leader belongs to a process
// with another start time, the old session has ended, and the number belongs to another session.
std::set<pid_t> find_sessions(const std::vector<ProcessSeen>& ranks) {
  std::set<pid_t> sessions;
  for (const auto& rank : ranks) {
    const auto now = see_process(rank.pid);
    if (!now || now->start_ticks == rank.start_ticks) sessions.insert(rank.pid);
  }
  return sessions;
}

// Kills what one look at all processes finds, and returns how many there were.
std::size_t kill_found(const TaskMarks& marks) {
  const auto members = list_cgroup_members(marks.cgroups);
  kill_cgroup_members(marks.cgroups);
  const auto sessions = find_sessions(marks.ranks);
  const std::string entry = std::string(kTokenVariable) + "=" + marks.token;
  const auto carries = [&](const ProcessSeen& process) {
    if (process.pid == ::getpid() || process.state == 'Z' || process.state == 'X') return false;
    return std::binary_search(members.begin(), members.end(), process.pid) || sessions.contains(process.session) ||
           (!marks.token.empty() && has_environment_entry(process.pid, entry));
  };
  const auto all = see_all_processes();
  std::size_t killed = 0;
  for (const auto& process : all) {
    if (!carries(process)) continue;
    for (const auto& below : descendants_of(process.pid, all)) signal_process(below, SIGKILL);
    signal_process(process, SIGKILL);
    ++killed;
  }
  return killed;
}

}  // namespace

TaskMarks read_marks(const std::string& task_dir) {
  TaskMarks marks;
  if (const auto launch = read_launch(task_dir)) {
    marks.token = launch->token;
    marks.cgroups = name_task_cgroups(launch->places, to_string(launch->launch.key));
    if (launch->launch.user && launch->launch.user->only_runs_tasks) marks.uid = launch->launch.user->uid;
  }
  const auto supervisor = read_supervisor(task_dir);
  if (!supervisor || supervisor->boot != boot_id()) return marks;
  if (const auto started = read_started(task_dir)) marks.ranks = started->ranks;
  return marks;
}

bool kill_orphans(const TaskMarks& marks, int looks) {
  constexpr int kMostLooks = 20;
  int quiet = 0;
  for (int look = 0; look < kMostLooks && quiet < looks; ++look) quiet = kill_found(marks) == 0 ? quiet + 1 : 0;
  return quiet >= looks;
}

}  // namespace berth::executor
