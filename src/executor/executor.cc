#include "executor/executor.h"

#include <dirent.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <tuple>

#include "base/hash.h"
#include "executor/descriptor.h"
#include "executor/hung_supervisor.h"
#include "executor/launch_check.h"
#include "executor/notify_pipe.h"
#include "executor/orphans.h"
#include "executor/process.h"
#include "executor/record.h"
#include "executor/shared_memory.h"
#include "executor/shell_desk.h"
#include "executor/state_file.h"
#include "executor/supervisor_program.h"
#include "executor/tree_walk.h"
#include "model/exit_code.h"

namespace berth::executor {

namespace {

constexpr int kSpawnTries = 3;
constexpr std::size_t kMostHungKept = 1'000;
constexpr std::size_t kMostEndedKept = 256;
constexpr int kMostAncestors = 1'000;
constexpr std::int64_t kLockPatienceMs = 3'000;
constexpr std::int64_t kSecondLookMs = 1'000;  // between two looks at a supervisor that seems to hang

std::string random_token() {
  std::random_device device;
  char text[33];
  std::snprintf(text, sizeof text, "%08x%08x%08x%08x", device(), device(), device(), device());
  return text;
}

// What the tokens of this server's tasks begin with; empty without an identity.
std::string token_prefix(const std::string& server) { return server.empty() ? "" : server + "."; }

// The group of this run directory: the same after every restart, another for every other directory of the machine.
std::string cgroup_name(const std::string& run_dir) {
  char text[32];
  std::snprintf(text, sizeof text, "berth-%016llx", static_cast<unsigned long long>(Hasher().add(run_dir).digest()));
  return text;
}

Descriptor open_lock(const std::string& path) {
  return Descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
}

// The kernel keeps a lock exactly as long as a process has it open. So no crash leaves a lock behind, and no pid has to
// be trusted.
Descriptor try_lock(const std::string& path) {
  Descriptor lock = open_lock(path);
  if (lock.is_open() && ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) lock.reset();
  return lock;
}

// A server that was killed while it executed a supervisor leaves a child that holds all its locks until it executes, a
// moment later. The next server waits for that moment. A real second server is refused after it.
Descriptor wait_for_lock(const std::string& path) {
  for (const std::int64_t begin = boot_clock_ms(); boot_clock_ms() - begin < kLockPatienceMs;) {
    if (Descriptor lock = try_lock(path); lock.is_open()) return lock;
    ::usleep(10'000);
  }
  return {};
}

void discard(const std::string& path) { (void)remove_tree(path).has_value(); }

std::vector<std::string> list_directory(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(path, error)) names.push_back(entry.path().filename());
  return names;
}

// Returns the part of the server's environment that supervisors, and jobs below them, get.
std::vector<std::string> allowed_environment() {
  std::vector<std::string> allowed;
  for (const char* name : {"PATH", "HOME", "LANG", "TZ", "USER"}) {
    if (const char* value = ::getenv(name)) allowed.push_back(std::string(name) + "=" + value);
  }
  return allowed;
}

// The clock for the patience with supervisors. It stands still while the machine is suspended.
std::int64_t steady_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Returns the shortest grace of the stops in the directory of commands that no supervisor has taken up.
std::optional<std::int64_t> find_stop(const std::string& task_dir) {
  std::optional<std::int64_t> grace_ms;
  for (const auto& name : list_directory(task_dir + "/commands")) {
    if (!name.ends_with(".json")) continue;
    const auto command = read_command(task_dir + "/commands/" + name);
    if (!command || command->kind != Command::Kind::kStop) continue;
    grace_ms = std::min(grace_ms.value_or(command->grace_ms), command->grace_ms);
  }
  return grace_ms;
}

bool has_gpu(const TaskMarks& marks, const std::string& gpu) {
  return std::find(marks.gpus.begin(), marks.gpus.end(), gpu) != marks.gpus.end();
}

// Returns the process and those above it, up to init.
std::vector<ProcessSeen> line_of(const ProcessSeen& process) {
  std::vector<ProcessSeen> line{process};
  for (int up = 0; up < kMostAncestors && line.back().parent > 1; ++up) {
    const auto parent = see_process(line.back().parent);
    if (!parent) break;
    line.push_back(*parent);
  }
  return line;
}

// A stop that was given to a supervisor, and when the task must have ended.
struct StopGiven {
  std::int64_t deadline_ms = 0;
  std::int64_t given_ms = 0;    // the latest of several
  bool undelivered = false;     // the task has removed the directory of commands
  std::int64_t overdue_ms = 0;  // when it was first seen to be late; 0: never
};

struct Task {
  Task(const TaskKey& named, std::string in) : key(named), directory(std::move(in)) {}

  TaskKey key;
  std::string directory;
  bool started_told = false;
  std::uint64_t checkpoints_told = 0;
  bool exit_told = false;
  int spawn_tries = 0;
  std::optional<StopGiven> stop;
  bool hung = false;  // its supervisor was killed for that
  TaskMarks marks;
  Descriptor lock;  // an open file of its own of the lock, which the task cannot remove; locked once the task is over
};

}  // namespace

class Executor::Impl {
 public:
  Impl(ExecutorOptions options, Descriptor lock) : options_(std::move(options)), lock_(std::move(lock)) {
    program_ = options_.supervisor.empty() ? find_supervisor_program()
                                           : SupervisorProgram{options_.supervisor.front(), options_.supervisor, {}};
  }
  ~Impl() { remove_cgroup_places(places_); }

  Result<void> prepare();
  Result<void> start(const TaskLaunch& launch);
  Result<void> command(const TaskKey& key, const Command& command);
  Result<Descriptor> open_shell(const TaskKey& key, const ShellBegin& begin);
  std::vector<std::string> warnings() const;
  Result<void> forget(const TaskKey& key);
  std::vector<Observation> observe();
  Result<void> renew_lease() { return replace_state_file(options_.run_dir + "/lease", ""); }
  std::vector<TaskKey> known() const;
  bool knows(const TaskKey& key) const;
  std::uint64_t process_looks() const;
  std::vector<std::string> gpus_of(const TaskKey& key) const;
  bool has_holder(const std::string& gpu) const;
  ProcessOwner owner_of(pid_t pid, const std::string& gpu) const;
  int wait_fd() const { return notify_pipe_.get(); }
  const Capabilities& capabilities() const { return capabilities_; }

 private:
  std::string directory_of(const TaskKey& key) const { return tasks_dir() + "/" + to_string(key); }
  std::string tasks_dir() const { return options_.run_dir + "/tasks"; }
  void find_capabilities();
  void adopt();
  void end_strangers();
  Result<void> make_task_directory(const TaskLaunch& launch);
  Result<void> fill_task_directory(const std::string& directory, const TaskLaunch& launch);
  void remove_task_directory(const TaskKey& key);
  Result<void> spawn_supervisor(Task& task, const Descriptor& lock);
  void reap_spawned();
  bool look_at(Task& task, std::vector<Observation>& seen);
  void look_for_ends(std::span<Task* const> over, std::vector<Observation>& seen);
  void tell_exit(Task& task, const Exited& exited, std::vector<Observation>& seen);
  void clean_up_after(uid_t uid) const;
  std::optional<Exited> read_exit_of(const Task& task) const;
  Result<void> give_command(const Task& task, const Command& command);
  void note_stop(Task& task, std::int64_t grace_ms);
  void watch_stop(Task& task);
  static bool is_over(Task& task);
  static bool has_exited(Task& task);
  void bury(Task& task);
  static void record_lost(const Task& task, ExitReason reason, const std::string& message, int code = 0);

  ExecutorOptions options_;
  SupervisorProgram program_;
  Descriptor lock_;
  Descriptor notify_pipe_;
  CgroupPlaces places_;
  Capabilities capabilities_;
  mutable std::mutex mutex_;  // guards everything below
  std::map<TaskKey, Task> tasks_;
  // The tasks with GPUs that were forgotten last, so that what they may have left on a GPU is known for theirs.
  std::deque<std::pair<TaskKey, TaskMarks>> ended_;
  std::vector<pid_t> spawned_;  // children that detach at once and wait to be reaped
  std::uint64_t commands_given_ = 0;
  std::uint64_t process_looks_ = 0;
  std::size_t strangers_ended_ = 0;
  // The supervisors that were killed in the last warn_ms: when, and of which task.
  std::deque<std::pair<std::int64_t, TaskKey>> hung_;
};

Result<void> Executor::Impl::prepare() {
  if (auto made = make_directories(tasks_dir(), 0700); !made) return made;
  const std::string notify_pipe = options_.run_dir + "/doorbell";
  if (auto made = make_notify_pipe(notify_pipe); !made) return made;
  notify_pipe_ = watch_notify_pipe(notify_pipe);
  if (!notify_pipe_.is_open()) return system_error("open", notify_pipe, errno);
  find_capabilities();
  adopt();
  end_strangers();
  return renew_lease();
}

void Executor::Impl::find_capabilities() {
  CgroupProbe probe;
  if (options_.cgroups) probe = probe_cgroups(cgroup_name(options_.run_dir));
  places_ = probe.places;
  capabilities_.memory_limit = !places_.memory.empty();
  capabilities_.cpu_limit = !places_.cpu.empty();
  capabilities_.pids_limit = !places_.pids.empty();
  capabilities_.other_users = ::geteuid() == 0;
  capabilities_.warnings = std::move(probe.warnings);
  if (!capabilities_.other_users) {
    capabilities_.warnings.push_back(
        "tasks are not kept apart: the server is not root, so they all run as its own user, and each can read the "
        "token "
        "of the server and what other jobs have");
  }
}

// Every directory named after a key is an accepted task. The others are unfinished parts of a start or a forget that a
// crash interrupted: of the first nothing ever ran; of the second nothing is needed any more.
void Executor::Impl::adopt() {
  for (const auto& name : list_directory(tasks_dir())) {
    if (const auto key = parse_task_key(name)) {
      Task& task = tasks_.try_emplace(*key, *key, directory_of(*key)).first->second;
      task.lock = open_lock(task.directory + "/lock");
      task.marks = read_marks(task.directory);
      if (const auto grace_ms = find_stop(task.directory)) note_stop(task, *grace_ms);
    } else {
      discard(tasks_dir() + "/" + name);
    }
  }
}

void Executor::Impl::end_strangers() {
  if (options_.server.empty()) return;
  std::set<std::string> own;
  for (const auto& [key, task] : tasks_) own.insert(task.marks.token);
  if (own.contains("")) return;  // a record cannot be read: its task cannot be told from a stranger
  strangers_ended_ = kill_strangers(token_prefix(options_.server), own);
}

Result<void> Executor::Impl::start(const TaskLaunch& launch) {
  if (auto checked = check_launch(launch); !checked) return checked;
  if (launch.user && !capabilities_.other_users && launch.user->uid != ::geteuid()) {
    return Error{ErrorCode::kUnsupported, "only root can run a task as another user"};
  }
  const std::lock_guard guard(mutex_);
  if (tasks_.contains(launch.key)) return {};
  if (auto made = make_task_directory(launch); !made) return made;
  Task task(launch.key, directory_of(launch.key));
  const Descriptor lock = try_lock(task.directory + "/lock");
  auto spawned = lock.is_open() ? spawn_supervisor(task, lock) : system_error("lock", task.directory, errno);
  if (!spawned) {
    remove_task_directory(launch.key);
    return spawned;
  }
  task.lock = open_lock(task.directory + "/lock");
  task.marks = read_marks(task.directory);
  tasks_.emplace(launch.key, std::move(task));
  return {};
}

// The directory is filled under another name and appears by one rename: with its launch record, or not at all.
Result<void> Executor::Impl::make_task_directory(const TaskLaunch& launch) {
  const std::string half = tasks_dir() + "/new-" + to_string(launch.key);
  discard(half);
  auto filled = fill_task_directory(half, launch);
  if (filled && ::rename(half.c_str(), directory_of(launch.key).c_str()) != 0) {
    filled = system_error("rename", half, errno);
  }
  if (!filled) {
    discard(half);
    return filled;
  }
  return sync_directory(tasks_dir());
}

Result<void> Executor::Impl::fill_task_directory(const std::string& directory, const TaskLaunch& launch) {
  if (auto made = make_directories(directory + "/commands", 0700); !made) return made;
  if (auto made = make_notify_pipe(directory + "/doorbell"); !made) return made;
  if (!open_lock(directory + "/lock").is_open()) return system_error("open", directory + "/lock", errno);
  return replace_state_file(directory + "/launch.json",
                            encode(LaunchRecord{launch, token_prefix(options_.server) + random_token(), places_}));
}

void Executor::Impl::remove_task_directory(const TaskKey& key) {
  const std::string old = tasks_dir() + "/old-" + to_string(key);
  ::rename(directory_of(key).c_str(), old.c_str());
  discard(old);
}

// The supervisor inherits the locked descriptor, so a task that may run is never without its lock.
Result<void> Executor::Impl::spawn_supervisor(Task& task, const Descriptor& lock) {
  ++task.spawn_tries;
  auto arguments = program_.words;
  arguments.push_back(task.directory);
  auto environment = allowed_environment();
  auto argv = pointers_to(arguments);
  auto envp = pointers_to(environment);
  const std::string diary = task.directory + "/supervisor.log";
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDWR, 0);
  ::posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_RDWR, 0);
  ::posix_spawn_file_actions_addopen(&files, 2, diary.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  ::posix_spawn_file_actions_adddup2(&files, lock.get(), 3);
  ::posix_spawn_file_actions_addclosefrom_np(&files, 4);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t every;
  ::sigfillset(&every);
  sigset_t none;
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigdefault(&attributes, &every);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID);
  pid_t pid = 0;
  const int problem = ::posix_spawn(&pid, program_.path.c_str(), &files, &attributes, argv.data(), envp.data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&files);
  if (problem != 0) return Error{ErrorCode::kIo, system_error("execute", arguments.front(), problem).message};
  spawned_.push_back(pid);
  return {};
}

void Executor::Impl::reap_spawned() {
  std::erase_if(spawned_, [](pid_t pid) { return ::waitpid(pid, nullptr, WNOHANG) != 0; });
}

Result<void> Executor::Impl::command(const TaskKey& key, const Command& command) {
  const std::lock_guard guard(mutex_);
  const auto found = tasks_.find(key);
  if (found == tasks_.end()) return not_found("no task " + to_string(key));
  Task& task = found->second;
  if (has_exited(task)) return not_found("task " + to_string(key) + " has exited");
  if (command.kind == Command::Kind::kStop) note_stop(task, command.grace_ms);
  return give_command(task, command);
}

// A command is a file. So it reaches a supervisor that has not started yet, is stopped, or outlives this process.
Result<void> Executor::Impl::give_command(const Task& task, const Command& command) {
  const std::string& directory = task.directory;
  char name[64];
  std::snprintf(name, sizeof name, "/commands/%020lld-%06llu.json", static_cast<long long>(wall_clock_ms()),
                static_cast<unsigned long long>(commands_given_++));
  auto given = replace_state_file(directory + name, encode(command));
  if (!given && exists(directory)) {  // the task may have removed or replaced the directory of commands
    std::error_code ignored;
    const std::string commands = directory + "/commands";
    if (!std::filesystem::is_directory(commands, ignored)) discard(commands);
    if (make_directories(commands, 0700)) given = replace_state_file(directory + name, encode(command));
  }
  notify(directory + "/doorbell");
  return given;
}

Result<Descriptor> Executor::Impl::open_shell(const TaskKey& key, const ShellBegin& begin) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = tasks_.find(key);
    if (found == tasks_.end()) return not_found("no task " + to_string(key));
    if (has_exited(found->second)) return not_found("task " + to_string(key) + " has exited");
  }
  return connect_to_shells(directory_of(key), begin);
}

void Executor::Impl::note_stop(Task& task, std::int64_t grace_ms) {
  const std::int64_t now = steady_ms();
  const std::int64_t deadline = now + grace_ms + options_.obey_ms;
  task.stop = StopGiven{task.stop ? std::min(task.stop->deadline_ms, deadline) : deadline, now};
}

// A stop whose grace is long over is looked for among the commands that no supervisor took up. If there is none, the
// supervisor was told and may have hung since, so it is told once more. If there is one, also at a second look, it
// hangs. A machine that was only paused gives it the time in between.
void Executor::Impl::watch_stop(Task& task) {
  const std::int64_t now = steady_ms();
  if (!task.stop || now < task.stop->deadline_ms || now < task.stop->given_ms + options_.obey_ms) return;
  StopGiven& stop = *task.stop;
  if (!stop.undelivered && !find_stop(task.directory)) {
    stop = StopGiven{now + options_.obey_ms, now};
    stop.undelivered = !give_command(task, {Command::Kind::kStop, 0, 0}).has_value();
  } else if (stop.overdue_ms == 0) {
    stop.overdue_ms = now;
    notify(task.directory + "/doorbell");
  } else if (now >= stop.overdue_ms + std::min(kSecondLookMs, options_.obey_ms) && kill_hung_supervisor(task.lock)) {
    task.hung = true;
    if (hung_.size() == kMostHungKept) hung_.pop_front();
    hung_.emplace_back(now, task.key);
  }
}

std::vector<std::string> Executor::Impl::warnings() const {
  const std::lock_guard guard(mutex_);
  std::vector<std::string> all;
  if (strangers_ended_ > 0) {
    all.push_back(std::to_string(strangers_ended_) + (strangers_ended_ == 1 ? " task" : " tasks") +
                  " that this data directory does not know ran here at the start and was ended: another copy of the "
                  "directory had started it, or its records were lost");
  }
  const auto is_old = [&](const auto& hung) { return hung.first + options_.warn_ms < steady_ms(); };
  const auto count = hung_.size() - static_cast<std::size_t>(std::count_if(hung_.begin(), hung_.end(), is_old));
  if (count == 0) return all;
  all.push_back(std::to_string(count) + (count == 1 ? " supervisor" : " supervisors") +
                " did not obey a stop in the last day and had to be killed with the task; the last one was of task " +
                to_string(hung_.back().second) + " (job.attempt.task.incarnation)");
  return all;
}

Result<void> Executor::Impl::forget(const TaskKey& key) {
  const std::lock_guard guard(mutex_);
  const auto found = tasks_.find(key);
  if (found == tasks_.end()) return {};
  if (!has_exited(found->second)) return conflict("task " + to_string(key) + " has not exited");
  remove_task_cgroups(found->second.marks.cgroups);
  if (!found->second.marks.gpus.empty()) {
    if (ended_.size() == kMostEndedKept) ended_.pop_front();
    ended_.emplace_back(key, found->second.marks);
    ended_.back().second.ranks.clear();  // their sessions are empty, and other processes may get their numbers
  }
  remove_task_directory(key);
  tasks_.erase(found);
  return {};
}

std::vector<Observation> Executor::Impl::observe() {
  const std::lock_guard guard(mutex_);
  drain_notify_pipe(notify_pipe_);
  reap_spawned();
  std::vector<Observation> seen;
  std::vector<Task*> over;
  for (auto& [key, task] : tasks_) {
    if (!task.exit_told && look_at(task, seen)) over.push_back(&task);
  }
  look_for_ends(over, seen);
  return seen;
}

// Returns true if the supervisor is gone: then this process gets its lock. The open file is the one from the start of
// the task, so a task that removes or replaces its directory changes nothing.
bool Executor::Impl::is_over(Task& task) {
  if (!task.lock.is_open()) task.lock = open_lock(task.directory + "/lock");
  return task.lock.is_open() && ::flock(task.lock.get(), LOCK_EX | LOCK_NB) == 0;
}

bool Executor::Impl::has_exited(Task& task) {
  return task.exit_told || (exists(task.directory + "/exit.json") && is_over(task));
}

// Returns true if the supervisor is gone. That is asked first, and the exit is reported last. Everything before it is
// then on disk, and nothing is reported after it.
bool Executor::Impl::look_at(Task& task, std::vector<Observation>& seen) {
  const bool over = is_over(task);
  if (!task.started_told) {
    if (const auto started = read_started(task.directory)) {
      Started told{task.key, started->time, {}};
      for (const auto& rank : started->ranks) told.pids.push_back(rank.pid);
      seen.emplace_back(std::move(told));
      task.started_told = true;
      task.marks.ranks = read_marks(task.directory).ranks;
    }
  }
  const auto checkpoint = read_checkpoint(task.directory);
  if (checkpoint && checkpoint->count > task.checkpoints_told) {
    seen.emplace_back(CheckpointReported{task.key, checkpoint->attempt, checkpoint->step, checkpoint->time});
    task.checkpoints_told = checkpoint->count;
  }
  if (!over) watch_stop(task);
  return over;
}

// An exit is believed once the supervisor is gone and a look finds no process of the task: a task that runs as the
// server's own user can write a record of its exit itself.
void Executor::Impl::look_for_ends(std::span<Task* const> over, std::vector<Observation>& seen) {
  std::vector<OrphanSearch> searches;
  for (const Task* task : over) {
    const bool recorded = exists(task->directory + "/exit.json");
    searches.push_back({&task->marks, recorded ? 1 : 2});
  }
  process_looks_ += kill_orphans(searches);
  for (std::size_t i = 0; i < over.size(); ++i) {
    if (!searches[i].done()) continue;
    if (searches[i].looks == 2) bury(*over[i]);
    if (const auto exited = read_exit_of(*over[i])) tell_exit(*over[i], *exited, seen);
  }
}

void Executor::Impl::tell_exit(Task& task, const Exited& exited, std::vector<Observation>& seen) {
  seen.emplace_back(exited);
  task.exit_told = true;
  if (task.marks.uid && capabilities_.other_users) clean_up_after(*task.marks.uid);
}

// The last task of a user takes with it what the kernel keeps for the user beyond its processes.
void Executor::Impl::clean_up_after(uid_t uid) const {
  const bool is_used = std::any_of(tasks_.begin(), tasks_.end(), [uid](const auto& entry) {
    return entry.second.marks.uid == uid && !entry.second.exit_told;
  });
  if (!is_used && !has_processes(uid)) remove_shared_memory(uid);
}

std::optional<Exited> Executor::Impl::read_exit_of(const Task& task) const {
  auto exited = read_exit(task.directory, task.key);
  if (exited) return *exited;
  if (exited.error().code == ErrorCode::kNotFound) return std::nullopt;
  Exited unknown;
  unknown.key = task.key;
  unknown.time = Timestamp{wall_clock_ms()};
  unknown.reason = ExitReason::kSupervisorLost;
  unknown.message = exited.error().message;
  return unknown;
}

// Requires: this process has the lock of the task, so its supervisor is dead, and nothing of the task is left. A task
// of which nothing ever ran gets a new supervisor.
void Executor::Impl::bury(Task& task) {
  if (!exists(task.directory)) {
    return record_lost(task, task.hung ? ExitReason::kKilled : ExitReason::kSupervisorLost,
                       "its supervisor died, and its run directory was removed", kSupervisorDiedCode);
  }
  const auto supervisor = read_supervisor(task.directory);
  if (!supervisor && supervisor.error().code == ErrorCode::kNotFound && !task.started_told) {
    task.lock.reset();
    const Descriptor lock = try_lock(task.directory + "/lock");
    if (!lock.is_open()) return;
    const bool again = task.spawn_tries < kSpawnTries && spawn_supervisor(task, lock);
    task.lock = open_lock(task.directory + "/lock");
    if (again) return;
    const auto said = read_state_file(task.directory + "/supervisor.log", 1 << 16);
    return record_lost(task, ExitReason::kStartFailed, "its supervisor could not start: " + (said ? *said : ""));
  }
  remove_task_cgroups(task.marks.cgroups);
  const bool same_boot = supervisor && supervisor->boot == boot_id();
  if (task.hung || (same_boot && find_stop(task.directory))) {
    return record_lost(task, ExitReason::kKilled,
                       "its supervisor did not obey a stop and was killed, with what was left of the task");
  }
  record_lost(task, ExitReason::kSupervisorLost,
              same_boot ? "its supervisor died; what it left running was killed" : "the machine restarted",
              same_boot ? kSupervisorDiedCode : 0);
}

// A record that could not be written is tried again at the next look.
void Executor::Impl::record_lost(const Task& task, ExitReason reason, const std::string& message, int code) {
  Exited exited;
  exited.key = task.key;
  exited.time = Timestamp{wall_clock_ms()};
  exited.reason = reason;
  exited.message = message;
  if (reason == ExitReason::kStartFailed) exited.code = kNodeShortCode;  // nothing of the job has run
  if (reason == ExitReason::kSupervisorLost) exited.code = code;
  if (reason == ExitReason::kKilled) exited.signal = SIGKILL;
  if (const auto started = read_started(task.directory)) {
    exited.ran_ms = std::max<std::int64_t>(exited.time - started->time, 0);
  }
  (void)::mkdir(task.directory.c_str(), 0700);  // the task may have removed it
  (void)replace_state_file(task.directory + "/exit.json", encode(exited)).has_value();
}

std::vector<TaskKey> Executor::Impl::known() const {
  const std::lock_guard guard(mutex_);
  std::vector<TaskKey> keys;
  for (const auto& [key, task] : tasks_) keys.push_back(key);
  return keys;
}

std::vector<std::string> Executor::Impl::gpus_of(const TaskKey& key) const {
  const std::lock_guard guard(mutex_);
  const auto found = tasks_.find(key);
  return found == tasks_.end() ? std::vector<std::string>() : found->second.marks.gpus;
}

bool Executor::Impl::has_holder(const std::string& gpu) const {
  const std::lock_guard guard(mutex_);
  return std::any_of(tasks_.begin(), tasks_.end(),
                     [&](const auto& entry) { return !entry.second.exit_told && has_gpu(entry.second.marks, gpu); });
}

// A process belongs to the task of which it or a process above it bears a mark. Else it belongs to a task of its user,
// if nothing but tasks runs by that uid; one that has the GPU goes before another that runs, and that before one that
// is over.
ProcessOwner Executor::Impl::owner_of(pid_t pid, const std::string& gpu) const {
  ProcessOwner owner;
  struct stat status {};
  const auto seen = see_process(pid);
  if (!seen || seen->state == 'X' || ::stat(("/proc/" + std::to_string(pid)).c_str(), &status) != 0) return owner;
  owner = {Belonging::kNoTask, *seen, status.st_uid, {}};
  const auto line = line_of(*seen);
  const std::lock_guard guard(mutex_);
  std::optional<std::pair<Belonging, TaskKey>> by_uid;
  const auto consider = [&](const TaskKey& key, const TaskMarks& marks, Belonging belongs) {
    if (std::any_of(line.begin(), line.end(), [&](const auto& one) { return bears_marks(one, marks); })) {
      owner.belongs = belongs;
      owner.task = key;
      return true;
    }
    if (marks.uid == status.st_uid && (!by_uid || belongs < by_uid->first)) by_uid.emplace(belongs, key);
    return false;
  };
  for (const auto& [key, task] : tasks_) {
    const Belonging belongs = task.exit_told             ? Belonging::kEnded
                              : has_gpu(task.marks, gpu) ? Belonging::kHolder
                                                         : Belonging::kOther;
    if (consider(key, task.marks, belongs)) return owner;
  }
  for (auto ended = ended_.rbegin(); ended != ended_.rend(); ++ended) {
    if (consider(ended->first, ended->second, Belonging::kEnded)) return owner;
  }
  // Asked last: a process that ends in between has lost its marks, too.
  if (by_uid)
    std::tie(owner.belongs, owner.task) = *by_uid;
  else if (has_given_back_its_memory(pid))
    owner.belongs = Belonging::kLeaving;
  return owner;
}

bool Executor::Impl::knows(const TaskKey& key) const {
  const std::lock_guard guard(mutex_);
  return tasks_.contains(key);
}

std::uint64_t Executor::Impl::process_looks() const {
  const std::lock_guard guard(mutex_);
  return process_looks_;
}

Result<std::unique_ptr<Executor>> Executor::open(const ExecutorOptions& options) {
  if (auto made = make_directories(options.run_dir, 0700); !made) return made.error();
  std::error_code error;
  ExecutorOptions absolute = options;
  absolute.run_dir = std::filesystem::canonical(options.run_dir, error);
  if (error) return system_error("resolve", options.run_dir, error.value());
  Descriptor lock = wait_for_lock(absolute.run_dir + "/lock");
  if (!lock.is_open()) return conflict("another executor runs in " + absolute.run_dir);
  auto impl = std::make_unique<Impl>(std::move(absolute), std::move(lock));
  if (auto prepared = impl->prepare(); !prepared) return prepared.error();
  return std::unique_ptr<Executor>(new Executor(std::move(impl)));
}

Executor::Executor(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Executor::~Executor() = default;

Result<void> Executor::start(const TaskLaunch& launch) { return impl_->start(launch); }

Result<void> Executor::signal(const TaskKey& key, int signo) {
  if (signo < 1 || signo >= NSIG) return invalid("no signal " + std::to_string(signo));
  return impl_->command(key, {Command::Kind::kSignal, signo, 0});
}

Result<void> Executor::kill(const TaskKey& key, std::int64_t grace_ms) {
  if (grace_ms < 0 || grace_ms > kLongestMs) return invalid("a grace of " + std::to_string(grace_ms) + " ms");
  return impl_->command(key, {Command::Kind::kStop, 0, grace_ms});
}

Result<Descriptor> Executor::open_shell(const TaskKey& key, const ShellBegin& begin) {
  return impl_->open_shell(key, begin);
}

Result<void> Executor::forget(const TaskKey& key) { return impl_->forget(key); }
std::vector<Observation> Executor::observe() { return impl_->observe(); }
int Executor::wait_fd() const { return impl_->wait_fd(); }
Result<void> Executor::renew_lease() { return impl_->renew_lease(); }
std::vector<TaskKey> Executor::known() const { return impl_->known(); }
bool Executor::knows(const TaskKey& key) const { return impl_->knows(key); }
std::uint64_t Executor::process_looks() const { return impl_->process_looks(); }
std::vector<std::string> Executor::gpus_of(const TaskKey& key) const { return impl_->gpus_of(key); }
bool Executor::has_holder(const std::string& gpu) const { return impl_->has_holder(gpu); }
ProcessOwner Executor::owner_of(pid_t pid, const std::string& gpu) const { return impl_->owner_of(pid, gpu); }
std::vector<std::string> Executor::warnings() const { return impl_->warnings(); }
const Capabilities& Executor::capabilities() const { return impl_->capabilities(); }

}  // namespace berth::executor
