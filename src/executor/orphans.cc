#include "executor/orphans.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <optional>
#include <set>
#include <vector>

#include "executor/cgroup.h"
#include "executor/process.h"
#include "executor/record.h"

namespace berth::executor {

namespace {

struct Marks {
  std::vector<pid_t> cgroup_members;  // sorted
  std::string token_entry;
  std::set<pid_t> sessions;
};

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

Marks find_marks(const std::string& task_dir) {
  Marks marks;
  if (const auto supervisor = read_supervisor(task_dir)) {
    marks.cgroup_members = list_cgroup_members(supervisor->cgroups);
    kill_cgroup_members(supervisor->cgroups);
  }
  if (const auto launch = read_launch(task_dir)) {
    marks.token_entry = std::string(kTokenVariable) + "=" + launch->token;
  }
  if (const auto started = read_started(task_dir)) marks.sessions = find_sessions(started->ranks);
  return marks;
}

bool carries(const ProcessSeen& process, const Marks& marks) {
  if (process.pid == ::getpid() || process.state == 'Z' || process.state == 'X') return false;
  return std::binary_search(marks.cgroup_members.begin(), marks.cgroup_members.end(), process.pid) ||
         marks.sessions.contains(process.session) ||
         (!marks.token_entry.empty() && has_environment_entry(process.pid, marks.token_entry));
}

}  // namespace

std::size_t kill_orphans(const std::string& task_dir) {
  const Marks marks = find_marks(task_dir);
  const auto all = see_all_processes();
  std::size_t killed = 0;
  for (const auto& process : all) {
    if (!carries(process, marks)) continue;
    for (const auto& below : descendants_of(process.pid, all)) signal_process(below, SIGKILL);
    signal_process(process, SIGKILL);
    ++killed;
  }
  return killed;
}

}  // namespace berth::executor
