#include "executor/orphans.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <optional>
#include <set>
#include <string>
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

// By what a look recognises the processes of several tasks: the index of the search, by pid, session and token.
struct Recognised {
  std::map<pid_t, std::size_t> members;
  std::map<pid_t, std::size_t> sessions;
  std::map<std::string, std::size_t> tokens;
};

// The groups are listed before the processes are looked at, and killed in between.
Recognised recognise(std::span<const OrphanSearch> searches) {
  Recognised by;
  for (std::size_t i = 0; i < searches.size(); ++i) {
    if (searches[i].done()) continue;
    const TaskMarks& marks = *searches[i].marks;
    for (const pid_t pid : list_cgroup_members(marks.cgroups)) by.members.emplace(pid, i);
    kill_cgroup_members(marks.cgroups);
    for (const pid_t session : find_sessions(marks.ranks)) by.sessions.emplace(session, i);
    if (!marks.token.empty()) by.tokens.emplace(marks.token, i);
  }
  return by;
}

// Returns the indexes of the searches that the process belongs to.
std::set<std::size_t> searches_of(const ProcessSeen& process, const Recognised& by) {
  std::set<std::size_t> found;
  if (process.pid == ::getpid() || process.state == 'Z' || process.state == 'X') return found;
  if (const auto member = by.members.find(process.pid); member != by.members.end()) found.insert(member->second);
  if (const auto one = by.sessions.find(process.session); one != by.sessions.end()) found.insert(one->second);
  if (by.tokens.empty()) return found;
  for (const std::string& token : environment_values(process.pid, kTokenVariable)) {
    if (const auto carried = by.tokens.find(token); carried != by.tokens.end()) found.insert(carried->second);
  }
  return found;
}

// Kills what one look at all processes finds, and counts the quiet looks of each search.
void look(std::span<OrphanSearch> searches) {
  const Recognised by = recognise(searches);
  const auto all = see_all_processes();
  std::set<std::size_t> found;
  for (const auto& process : all) {
    const auto owners = searches_of(process, by);
    if (owners.empty()) continue;
    for (const auto& below : descendants_of(process.pid, all)) signal_process(below, SIGKILL);
    signal_process(process, SIGKILL);
    found.insert(owners.begin(), owners.end());
  }
  for (std::size_t i = 0; i < searches.size(); ++i) {
    if (!searches[i].done()) searches[i].quiet = found.contains(i) ? 0 : searches[i].quiet + 1;
  }
}

}  // namespace

TaskMarks read_marks(const std::string& task_dir) {
  TaskMarks marks;
  if (const auto launch = read_launch(task_dir)) {
    marks.token = launch->token;
    marks.cgroups = name_task_cgroups(launch->places, to_string(launch->launch.key));
    marks.gpus = launch->launch.gpus;
    if (launch->launch.user && launch->launch.user->only_runs_tasks) marks.uid = launch->launch.user->uid;
  }
  const auto supervisor = read_supervisor(task_dir);
  if (!supervisor || supervisor->boot != boot_id()) return marks;
  if (const auto started = read_started(task_dir)) marks.ranks = started->ranks;
  return marks;
}

bool bears_marks(const ProcessSeen& process, const TaskMarks& marks) {
  const auto members = list_cgroup_members(marks.cgroups);
  if (std::binary_search(members.begin(), members.end(), process.pid)) return true;
  if (find_sessions(marks.ranks).contains(process.session)) return true;
  return !marks.token.empty() && has_environment_entry(process.pid, std::string(kTokenVariable) + "=" + marks.token);
}

std::uint64_t kill_orphans(std::span<OrphanSearch> searches) {
  constexpr std::uint64_t kMostLooks = 20;
  const auto is_done = [](const OrphanSearch& search) { return search.done(); };
  std::uint64_t looks = 0;
  for (; looks < kMostLooks && !std::all_of(searches.begin(), searches.end(), is_done); ++looks) look(searches);
  return looks;
}

std::size_t kill_strangers(const std::string& prefix, const std::set<std::string>& own) {
  constexpr int kMostLooks = 20;
  constexpr int kQuietLooks = 2;
  std::set<std::string> ended;
  int quiet = 0;
  for (int look = 0; look < kMostLooks && quiet < kQuietLooks; ++look) {
    const auto all = see_all_processes();
    bool found = false;
    for (const auto& process : all) {
      if (process.pid == ::getpid() || process.state == 'Z' || process.state == 'X') continue;
      for (const std::string& token : environment_values(process.pid, kTokenVariable)) {
        if (!token.starts_with(prefix) || own.contains(token)) continue;
        for (const auto& below : descendants_of(process.pid, all)) signal_process(below, SIGKILL);
        signal_process(process, SIGKILL);
        ended.insert(token);
        found = true;
      }
    }
    quiet = found ? 0 : quiet + 1;
  }
  return ended.size();
}

}  // namespace berth::executor
