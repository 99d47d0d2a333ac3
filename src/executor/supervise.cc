#include "executor/supervise.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>
#include <variant>
#include <vector>

#include "executor/as_user.h"
#include "executor/checkpoint_watch.h"
#include "executor/descriptor.h"
#include "executor/notify_pipe.h"
#include "executor/process.h"
#include "executor/rank.h"
#include "executor/record.h"
#include "executor/shell_desk.h"
#include "executor/state_file.h"
#include "executor/task_log_writer.h"
#include "executor/task_view.h"
#include "executor/user_directory.h"
#include "executor/workers.h"
#include "model/document/quantity.h"
#include "model/exit_code.h"

namespace berth::executor {

namespace {

constexpr int kLockFd = 3;
constexpr std::int64_t kLookEveryMs =
    200;  // interval of looks at the checkpoint directory and the lease, which send no notification
constexpr int kLongestShellStartMs = 5'000;    // the supervisor does nothing else meanwhile
constexpr std::int64_t kIdleMs = 1'000;        // interval otherwise; the most that a lost notification delays
constexpr std::int64_t kSweepEveryMs = 20;     // interval while orphans are killed
constexpr std::int64_t kRetryEveryMs = 1'000;  // interval of tries to write an exit record
constexpr int kSupervisorOomScore = -500;      // so that the kernel kills jobs first

// The clock of all limits. wall_clock_ms is only for texts.
std::int64_t now_ms() { return boot_clock_ms(); }

int read_own_oom_score() {
  int score = 0;
  std::ifstream("/proc/self/oom_score_adj") >> score;
  return score;
}

// Refused without root, and then left as it is.
void lower_own_oom_score() { std::ofstream("/proc/self/oom_score_adj") << kSupervisorOomScore; }

void sleep_ms(std::int64_t ms) { ::poll(nullptr, 0, static_cast<int>(ms)); }

// Returns the user of a task that runs as another user than its supervisor.
std::optional<uid_t> own_uid_of(const TaskLaunch& launch) {
  if (!launch.user || ::geteuid() != 0) return std::nullopt;
  return launch.user->uid;
}

bool has_failed(const Rank& rank) {
  return rank.ended && !(WIFEXITED(rank.wait_status) && WEXITSTATUS(rank.wait_status) == 0);
}

std::vector<std::string> list_commands(const std::string& directory) {
  std::vector<std::string> names;
  DIR* entries = ::opendir(directory.c_str());
  if (entries == nullptr) return names;
  while (const dirent* entry = ::readdir(entries)) {
    const std::string name = entry->d_name;
    if (name.ends_with(".json")) names.push_back(name);
  }
  ::closedir(entries);
  std::sort(names.begin(), names.end());
  return names;
}

class Supervisor {
 public:
  Supervisor(std::string task_dir, LaunchRecord record);
  int run();

 private:
  bool record_self();
  void make_cgroups();
  void make_checkpoint_dir();
  void make_view();
  void start_ranks();
  void record_started();

  void attend();
  std::int64_t ms_until_next_look() const;
  void wait_for_event(std::int64_t timeout_ms);
  void hear_signals();
  void reap();
  void judge_ended_rank(std::size_t index);
  void copy_output();
  void copy_stream(Descriptor& from, TaskLogWriter& to, int rank);
  void attend_shells();
  void end_shells();
  void obey_commands();
  void take_up_commands();
  std::optional<CheckpointAck> look_for_ack();
  void look_at_checkpoint();
  void keep_time_limit();
  void keep_lease();
  void keep_directory();
  void keep_terminal();
  void keep_grace();

  void stop(ExitReason reason, std::int64_t grace_ms, const std::string& message);
  void end_ranks(std::int64_t grace_ms);
  void signal_ranks(int signo);
  void signal_workers();
  void follow_workers();
  bool is_running() const;
  std::vector<ProcessSeen> list_orphans() const;
  void kill_orphans();
  void sweep();

  Exited describe_exit() const;
  std::string describe_end(const Exited& exited, std::int64_t memory_kills) const;
  void record_exit();

  std::string task_dir_;
  std::string run_dir_;
  TaskLaunch launch_;
  std::string token_;
  TaskCgroups cgroups_;
  int own_oom_score_ = 0;
  Descriptor signals_;
  Descriptor notify_pipe_;
  TaskLogWriter output_;
  TaskLogWriter errors_;
  TaskView view_;  // closed if the task has none of its own
  CheckpointWatch checkpoints_;
  std::uint64_t checkpoints_reported_ = 0;
  std::uint64_t bad_acks_told_ = 0;

  ShellDesk shells_;
  std::vector<Rank> ranks_;
  std::int64_t started_ms_ = 0;
  std::optional<std::size_t> deciding_rank_;  // the first that failed, else the last that ended
  std::optional<ExitReason> cause_;           // why it was made to end; absent while it runs by itself
  std::optional<StartFailure> start_failure_;
  std::string message_;
  std::optional<std::int64_t> kill_at_ms_;  // when the grace ends
  int awaits_workers_ = 0;                  // a signal for workers that were not there yet
  int workers_had_ = 0;                     // the last signal that workers got
  std::vector<ProcessSeen> signalled_workers_;
  bool launchers_told_ = false;
  std::string lease_seen_;
  std::int64_t lease_seen_ms_ = 0;
};

Supervisor::Supervisor(std::string task_dir, LaunchRecord record)
    : task_dir_(std::move(task_dir)),
      run_dir_(task_dir_ + "/../.."),
      launch_(std::move(record.launch)),
      token_(std::move(record.token)),
      cgroups_(name_task_cgroups(record.places, to_string(launch_.key))),
      own_oom_score_(read_own_oom_score()),
      notify_pipe_(watch_notify_pipe(task_dir_ + "/doorbell")),
      output_(launch_.log_dir, LogStream::kStdout, launch_.max_log_bytes, launch_.log_segments,
              static_cast<int>(launch_.rank_env.size())),
      errors_(launch_.log_dir, LogStream::kStderr, launch_.max_log_bytes, launch_.log_segments,
              static_cast<int>(launch_.rank_env.size())),
      checkpoints_(launch_.checkpoint_dir, launch_.key.attempt, own_uid_of(launch_)),
      shells_(task_dir_),
      lease_seen_ms_(now_ms()) {
  sigset_t heard;
  ::sigemptyset(&heard);
  for (const int signo : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&heard, signo);
  ::sigprocmask(SIG_BLOCK, &heard, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  signals_ = Descriptor(::signalfd(-1, &heard, SFD_NONBLOCK | SFD_CLOEXEC));
  lower_own_oom_score();
}

int Supervisor::run() {
  // Nothing has run before this record is on disk. So if a task has no such record, it can safely be started again.
  if (!record_self()) return 1;
  make_cgroups();
  make_checkpoint_dir();
  make_view();
  if (!shells_.problem().empty()) errors_.say(shells_.problem());
  obey_commands();
  if (!cause_) start_ranks();
  if (!cause_) record_started();
  obey_commands();
  while (is_running()) attend();
  sweep();
  copy_output();
  end_shells();
  look_at_checkpoint();
  output_.finish();
  errors_.finish();
  record_exit();
  return 0;
}

bool Supervisor::record_self() {
  const SupervisorRecord record{::getpid(), boot_id(), Timestamp{wall_clock_ms()}, cgroups_};
  const auto recorded = replace_state_file(task_dir_ + "/supervisor.json", encode(record));
  if (!recorded) std::fprintf(stderr, "%s\n", recorded.error().message.c_str());
  return recorded.has_value();
}

void Supervisor::make_cgroups() {
  const auto made = make_task_cgroups(cgroups_, {launch_.memory_limit_mib, launch_.cpu_milli, launch_.pids_limit});
  if (!made) errors_.say(made.error().message);
}

void Supervisor::make_checkpoint_dir() {
  const std::string& directory = launch_.checkpoint_dir;
  if (directory.empty()) return;
  if (own_uid_of(launch_)) {
    if (const auto given = give_directory(directory, *launch_.user); !given) errors_.say(given.error().message);
  } else if (::access(directory.c_str(), F_OK) != 0) {
    if (const auto made = make_directories(directory, 0755); !made) errors_.say(made.error().message);
  }
}

// Once the namespace is made, its mounts are there for all ranks, and for a rank that is started later.
void Supervisor::make_view() {
  if (!needs_view(launch_)) return;
  auto view =
      ::geteuid() == 0 ? make_task_view(launch_) : Result<TaskView>(invalid("mounts need a server that is root"));
  if (!view) {
    const int code = view.error().code == ErrorCode::kUnavailable ? kNodeShortCode : 126;
    start_failure_ = StartFailure{code, view.error().message};
    errors_.say(view.error().message);
    return stop(ExitReason::kStartFailed, 0, view.error().message);
  }
  view_ = std::move(*view);
  if (!view_.checkpoints.is_open()) return;
  checkpoints_ = CheckpointWatch("/proc/self/fd/" + std::to_string(view_.checkpoints.get()), launch_.key.attempt,
                                 own_uid_of(launch_));
  const AsUser as_user(launch_.user);
  checkpoints_.skip_present();  // nothing of this task has run yet
}

void Supervisor::start_ranks() {
  started_ms_ = now_ms();
  const std::size_t count = std::max<std::size_t>(launch_.rank_env.size(), 1);
  for (std::size_t rank = 0; rank < count; ++rank) {
    auto started = start_rank(launch_, rank, token_, cgroups_, own_oom_score_, view_.mounts.get(),
                              RankStreams{launch_.terminal, false, {}});
    if (auto* failure = std::get_if<StartFailure>(&started)) {
      start_failure_ = *failure;
      errors_.say(failure->message);
      return stop(ExitReason::kStartFailed, 0, failure->message);
    }
    ranks_.push_back(std::get<Rank>(std::move(started)));
  }
  if (launch_.terminal) shells_.has_terminal(ranks_.front().input.get(), started_ms_);
}

void Supervisor::record_started() {
  StartedRecord record{Timestamp{wall_clock_ms()}, {}};
  for (const auto& rank : ranks_) record.ranks.push_back(rank.process);
  const auto recorded = replace_state_file(task_dir_ + "/started.json", encode(record));
  if (!recorded) errors_.say(recorded.error().message);
  notify(run_dir_ + "/doorbell");
}

void Supervisor::attend() {
  wait_for_event(ms_until_next_look());
  hear_signals();
  copy_output();
  reap();
  attend_shells();
  obey_commands();
  look_at_checkpoint();
  keep_time_limit();
  keep_terminal();
  keep_lease();
  keep_directory();
  follow_workers();
  keep_grace();
}

std::int64_t Supervisor::ms_until_next_look() const {
  const bool follows = awaits_workers_ != 0 || !signalled_workers_.empty();
  const bool watches = !launch_.checkpoint_dir.empty() || view_.checkpoints.is_open();
  std::int64_t wait = watches || launch_.lease_ms > 0 || follows ? kLookEveryMs : kIdleMs;
  if (kill_at_ms_) wait = std::min(wait, *kill_at_ms_ - now_ms());
  if (launch_.time_limit_ms > 0 && !cause_) wait = std::min(wait, started_ms_ + launch_.time_limit_ms - now_ms());
  return std::clamp<std::int64_t>(wait, kill_at_ms_ ? kSweepEveryMs : 0, kIdleMs);
}

void Supervisor::wait_for_event(std::int64_t timeout_ms) {
  std::vector<pollfd> waited{{signals_.get(), POLLIN, 0}, {notify_pipe_.get(), POLLIN, 0}};
  for (const auto& rank : ranks_) {
    if (rank.output.is_open() && (!launch_.terminal || shells_.takes_output()))
      waited.push_back({rank.output.get(), POLLIN, 0});
    if (rank.errors.is_open()) waited.push_back({rank.errors.get(), POLLIN, 0});
  }
  shells_.add_waited(waited);
  ::poll(waited.data(), waited.size(), static_cast<int>(timeout_ms));
}

void Supervisor::hear_signals() {
  signalfd_siginfo heard{};
  while (::read(signals_.get(), &heard, sizeof heard) == static_cast<ssize_t>(sizeof heard)) {
    if (heard.ssi_signo == SIGTERM) stop(ExitReason::kKilled, launch_.grace_ms, "its supervisor was told to end");
  }
}

// The supervisor is the subreaper: it becomes the parent of every process that the task orphans, and reaps them here.
void Supervisor::reap() {
  int status = 0;
  for (pid_t pid = ::waitpid(-1, &status, WNOHANG | __WALL); pid > 0; pid = ::waitpid(-1, &status, WNOHANG | __WALL)) {
    if (shells_.reaped(pid, status)) continue;
    for (std::size_t index = 0; index < ranks_.size(); ++index) {
      if (ranks_[index].process.pid != pid || ranks_[index].ended) continue;
      ranks_[index].ended = true;
      ranks_[index].wait_status = status;
      judge_ended_rank(index);
    }
  }
}

// Ranks live and die together: the first that fails takes the others with it.
void Supervisor::judge_ended_rank(std::size_t index) {
  const bool decided = deciding_rank_ && has_failed(ranks_[*deciding_rank_]);
  if (!decided) deciding_rank_ = index;
  if (!decided && !cause_ && has_failed(ranks_[index]) && is_running()) {
    errors_.say("rank " + std::to_string(index) + " failed, which ends the others");
    end_ranks(launch_.grace_ms);
  }
}

void Supervisor::copy_output() {
  for (std::size_t index = 0; index < ranks_.size(); ++index) {
    copy_stream(ranks_[index].output, output_, static_cast<int>(index));
    copy_stream(ranks_[index].errors, errors_, static_cast<int>(index));
  }
}

// Copies at most a few buffers at a time, so that a rank that never stops printing does not keep the supervisor from
// its timers.
void Supervisor::copy_stream(Descriptor& from, TaskLogWriter& to, int rank) {
  char buffer[64 << 10];
  for (int turn = 0; from.is_open() && turn < 16; ++turn) {
    if (launch_.terminal && !shells_.takes_output()) return;
    const ssize_t count = ::read(from.get(), buffer, launch_.terminal ? kShellChunkBytes : sizeof buffer);
    if (count < 0 && errno != EIO) return;
    if (count <= 0) return from.reset();  // EIO: no process has the terminal any more
    to.write(rank, {buffer, static_cast<std::size_t>(count)});
    if (launch_.terminal) shells_.show({buffer, static_cast<std::size_t>(count)});
  }
}

// A shell is started as the first rank is, with another command.
void Supervisor::attend_shells() {
  const auto start = [this](const ShellBegin& wanted) -> std::variant<Rank, StartFailure> {
    if (ranks_.empty() || !is_running()) return StartFailure{kNodeShortCode, "the task does not run now"};
    TaskLaunch launch = launch_;
    launch.argv = wanted.command;
    if (!wanted.term.empty()) launch.env.emplace_back("TERM", wanted.term);
    return start_rank(launch, 0, token_, cgroups_, own_oom_score_, view_.mounts.get(),
                      RankStreams{wanted.terminal, wanted.input, wanted.size}, kLongestShellStartMs);
  };
  shells_.attend(start, now_ms());
}

void Supervisor::end_shells() {
  const Exited exited = describe_exit();
  shells_.end(exited.signal != 0 ? 128 + exited.signal : exited.code);
}

void Supervisor::obey_commands() {
  drain_notify_pipe(notify_pipe_);
  const std::string directory = task_dir_ + "/commands/";
  for (const auto& name : list_commands(directory)) {
    const auto command = read_command(directory + name);
    // A signal that comes before anything runs waits for the ranks. If it were dropped, the job would never be asked to
    // leave.
    if (command && command->kind == Command::Kind::kSignal && ranks_.empty()) continue;
    ::unlink((directory + name).c_str());
    if (!command) {
      errors_.say(command.error().message);
    } else if (command->kind == Command::Kind::kSignal) {
      signal_ranks(command->signo);
    } else {
      stop(ExitReason::kKilled, command->grace_ms, "");
    }
  }
}

// Takes up commands that have come too late to change anything. One that stays would say that the supervisor hangs.
void Supervisor::take_up_commands() {
  drain_notify_pipe(notify_pipe_);
  const std::string directory = task_dir_ + "/commands/";
  for (const auto& name : list_commands(directory)) ::unlink((directory + name).c_str());
}

// In a volume it is looked for with the rights of the user.
std::optional<CheckpointAck> Supervisor::look_for_ack() {
  const AsUser as_user(view_.checkpoints.is_open() ? launch_.user : std::nullopt);
  return checkpoints_.look();
}

void Supervisor::look_at_checkpoint() {
  const auto ack = look_for_ack();
  if (checkpoints_.bad_acks() > bad_acks_told_) {
    bad_acks_told_ = checkpoints_.bad_acks();
    errors_.say("ack.json is not a checkpoint acknowledgement: " + checkpoints_.last_problem());
  }
  if (!ack) return;
  const CheckpointRecord record{++checkpoints_reported_, static_cast<std::uint32_t>(ack->attempt), ack->step,
                                Timestamp{wall_clock_ms()}};
  const auto recorded = replace_state_file(task_dir_ + "/checkpoint.json", encode(record));
  if (!recorded) return errors_.say(recorded.error().message);
  notify(run_dir_ + "/doorbell");
}

void Supervisor::keep_time_limit() {
  if (launch_.time_limit_ms == 0 || cause_ || now_ms() - started_ms_ < launch_.time_limit_ms) return;
  const std::string limit = launch_.time_limit_ms % 1000 == 0 ? document::duration_text(launch_.time_limit_ms / 1000)
                                                              : std::to_string(launch_.time_limit_ms) + " ms";
  const std::string message = "over its time limit of " + limit;
  errors_.say(message);
  stop(ExitReason::kTimeLimit, launch_.grace_ms, message);
}

// The age of the lease is measured by the boot clock, from when the supervisor saw it change. So no other clock has to
// be right.
void Supervisor::keep_lease() {
  if (launch_.lease_ms == 0 || cause_) return;
  struct stat status {};
  std::string seen;
  if (::stat((run_dir_ + "/lease").c_str(), &status) == 0) {
    seen = std::to_string(status.st_mtim.tv_sec) + "." + std::to_string(status.st_mtim.tv_nsec);
  }
  if (seen != lease_seen_) {
    lease_seen_ = seen;
    lease_seen_ms_ = now_ms();
  } else if (now_ms() - lease_seen_ms_ > launch_.lease_ms) {
    stop(ExitReason::kLeaseExpired, 0,
         "the control plane was not heard for " + std::to_string(launch_.lease_ms) + " ms");
  }
}

// A task may remove its own run directory where it runs as the server's own user. No command could reach it any more,
// so it is ended.
void Supervisor::keep_directory() {
  struct stat lock {};
  if (cause_ || ::fstat(kLockFd, &lock) != 0 || lock.st_nlink > 0) return;
  errors_.say("its run directory was removed, which ends it");
  stop(ExitReason::kKilled, 0, "its run directory was removed");
}

// Nobody looks after an interactive task whose users have gone.
void Supervisor::keep_terminal() {
  if (!launch_.terminal || launch_.detached_ms == 0 || cause_) return;
  const auto since = shells_.detached_since();
  if (!since || now_ms() - *since < launch_.detached_ms) return;
  const std::int64_t ms = launch_.detached_ms;
  const std::string message = "no terminal was attached for " +
                              (ms % 1000 == 0 ? document::duration_text(ms / 1000) : std::to_string(ms) + " ms");
  errors_.say(message);
  stop(ExitReason::kTimeLimit, launch_.grace_ms, message);
}

void Supervisor::keep_grace() {
  if (kill_at_ms_ && now_ms() >= *kill_at_ms_) kill_orphans();
}

void Supervisor::stop(ExitReason reason, std::int64_t grace_ms, const std::string& message) {
  const bool failed_before = deciding_rank_ && has_failed(ranks_[*deciding_rank_]);
  if (!cause_ && !failed_before) {
    cause_ = reason;
    message_ = message;
  }
  end_ranks(grace_ms);
}

// The stop signal is sent once; a later request can only shorten the grace.
void Supervisor::end_ranks(std::int64_t grace_ms) {
  const std::int64_t kill_at = now_ms() + grace_ms;
  if (!kill_at_ms_ && grace_ms > 0) signal_ranks(launch_.stop_signal);
  kill_at_ms_ = kill_at_ms_ ? std::min(*kill_at_ms_, kill_at) : kill_at;
}

// Signals the process group of every rank that is not reaped: until then no other process can have its number.
void Supervisor::signal_ranks(int signo) {
  if (launch_.signal_workers) {
    awaits_workers_ = signo;
    return signal_workers();
  }
  for (const auto& rank : ranks_) {
    if (rank.ended) continue;
    ::killpg(rank.process.pid, signo);
    ::killpg(rank.process.pid, SIGCONT);
  }
}

// A signal that comes before the launcher has started its workers waits for them.
void Supervisor::signal_workers() {
  std::vector<ProcessSeen> workers;
  for (const auto& rank : ranks_) {
    if (rank.ended) continue;
    for (const auto& worker : find_workers(rank.process.pid)) workers.push_back(worker);
  }
  if (workers.empty()) return;
  for (const auto& worker : workers) {
    signal_process(worker, awaits_workers_);
    signal_process(worker, SIGCONT);
  }
  workers_had_ = awaits_workers_;
  awaits_workers_ = 0;
  signalled_workers_ = std::move(workers);
}

// Once the workers that were signalled are gone, the launcher is told to end. By itself it might start them anew, wait
// for the launchers of other tasks, or tell those that the program has succeeded and is over for them, too.
void Supervisor::follow_workers() {
  if (awaits_workers_ != 0) signal_workers();
  if (signalled_workers_.empty()) return;
  if (std::any_of(signalled_workers_.begin(), signalled_workers_.end(), is_alive)) return;
  signalled_workers_.clear();
  launchers_told_ = true;
  for (const auto& rank : ranks_) {
    if (!rank.ended) ::kill(rank.process.pid, SIGTERM);
  }
}

bool Supervisor::is_running() const {
  return std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return !rank.ended; });
}

std::vector<ProcessSeen> Supervisor::list_orphans() const {
  const auto all = see_all_processes();
  auto orphans = descendants_of(::getpid(), all);
  const auto members = list_cgroup_members(cgroups_);
  for (const auto& process : all) {
    const bool dead = process.state == 'Z' || process.state == 'X';
    if (!dead && std::binary_search(members.begin(), members.end(), process.pid)) orphans.push_back(process);
  }
  return orphans;
}

void Supervisor::kill_orphans() {
  shells_.note_kill();
  kill_cgroup_members(cgroups_);
  kill_all_below(::getpid());
  for (const auto& process : list_orphans()) signal_process(process, SIGKILL);
}

// Returns true if the kernel says that this process has no child, dead or alive. It is the subreaper, so then it has no
// descendant either. A look at /proc cannot say that of processes that fork and exit meanwhile. __WALL counts children
// that were cloned to end without SIGCHLD, too.
bool has_no_child() {
  siginfo_t ended{};
  return ::waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT | __WALL) != 0 && errno == ECHILD;
}

// Kills everything that the ranks left behind, even if it has detached itself: it is a descendant of the supervisor or
// in the cgroup.
void Supervisor::sweep() {
  for (reap(); !has_no_child() || !list_orphans().empty(); reap()) {
    kill_orphans();
    wait_for_event(kSweepEveryMs);
    hear_signals();
    take_up_commands();
    copy_output();
    attend_shells();
  }
}

Exited Supervisor::describe_exit() const {
  Exited exited;
  exited.time = Timestamp{wall_clock_ms()};
  exited.bad_acks = checkpoints_.bad_acks();
  exited.ran_ms = started_ms_ == 0 ? 0 : now_ms() - started_ms_;
  rusage used{};
  ::getrusage(RUSAGE_CHILDREN, &used);
  exited.cpu_ms =
      (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000 + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1000;
  exited.peak_rss_mib = used.ru_maxrss / 1024;
  if (start_failure_) {
    exited.code = start_failure_->code;
    exited.rank = static_cast<int>(ranks_.size());
  } else if (deciding_rank_) {
    const int status = ranks_[*deciding_rank_].wait_status;
    exited.rank = static_cast<int>(*deciding_rank_);
    exited.code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    exited.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  } else {
    exited.signal = launch_.stop_signal;  // stopped before it began
  }
  // The end of a launcher that was told to end stands for that of its workers.
  if (launchers_told_ && (exited.code != 0 || exited.signal != 0)) {
    exited.code = 0;
    exited.signal = workers_had_;
  }
  const std::int64_t memory_kills = count_memory_kills(cgroups_);
  const bool failed = exited.code != 0 || exited.signal != 0;
  if (cause_) {
    exited.reason = *cause_;
  } else if (failed && memory_kills > 0) {
    exited.reason = ExitReason::kOutOfMemory;
  } else {
    exited.reason = exited.signal != 0 ? ExitReason::kSignalled : ExitReason::kExited;
  }
  exited.message = describe_end(exited, memory_kills);
  return exited;
}

std::string Supervisor::describe_end(const Exited& exited, std::int64_t memory_kills) const {
  if (start_failure_) return message_;
  std::string text = message_.empty() ? "" : message_ + "; ";
  if (ranks_.empty()) return text + "stopped before it began";
  if (ranks_.size() > 1) text += "rank " + std::to_string(exited.rank) + " ";
  text += exited.signal != 0
              ? "ended by signal " + std::to_string(exited.signal) + " (" + ::strsignal(exited.signal) + ")"
              : "exited with code " + std::to_string(exited.code);
  if (memory_kills > 0) {
    text += "; the kernel killed " + std::to_string(memory_kills) + " of its processes for the memory limit of " +
            std::to_string(launch_.memory_limit_mib) + " MiB";
  }
  return text;
}

// Removes what is no file in the place of a record: a task that runs as the server's own user can put a directory
// there.
void clear_place(const std::string& record) {
  std::error_code ignored;
  for (const std::string& path : {record, record + ".new"}) {
    if (std::filesystem::is_directory(path, ignored)) std::filesystem::remove_all(path, ignored);
  }
}

// A full disk delays the report of an exit but never loses it, because this process stays until it is written. It stops
// trying only when the directory is gone and cannot be made again: then an operator removed everything. The lock goes
// before the notification, because an exit is believed when nobody holds it.
void Supervisor::record_exit() {
  const Exited exited = describe_exit();
  for (int attempt = 0; attempt < 10; ++attempt) {
    if (remove_task_cgroups(cgroups_)) break;
    sleep_ms(kSweepEveryMs);
  }
  while (true) {
    const std::string record = task_dir_ + "/exit.json";
    const auto recorded = replace_state_file(record, encode(exited));
    if (recorded) break;
    if (recorded.error().code == ErrorCode::kNotFound) {
      if (::mkdir(task_dir_.c_str(), 0700) != 0) break;
      continue;
    }
    clear_place(record);
    take_up_commands();
    sleep_ms(kRetryEveryMs);
  }
  ::close(kLockFd);
  notify(run_dir_ + "/doorbell");
}

// Detaches from the control plane: its session, terminal, descriptors, and parent.
void detach() {
  const pid_t child = ::fork();
  if (child < 0) std::fprintf(stderr, "%s\n", system_error("fork", "a supervisor", errno).message.c_str());
  if (child != 0) ::_exit(child < 0 ? 1 : 0);
  ::setsid();
  ::close_range(kLockFd + 1, ~0U, 0);
  ::fcntl(kLockFd, F_SETFD, FD_CLOEXEC);
  (void)!::chdir("/");
  ::umask(077);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

bool holds_lock() { return ::flock(kLockFd, LOCK_EX | LOCK_NB) == 0; }

}  // namespace

int supervise_main(const char* task_dir) {
  const std::string directory = task_dir;
  ::prctl(PR_SET_NAME, "berth-supervise");  // it may have been executed by a path that ends in a number
  detach();
  if (!holds_lock()) {
    std::fprintf(stderr, "berth supervise is for the executor's own use: the lock of %s is not ours\n", task_dir);
    return 2;
  }
  // A task that may have run already is never run again.
  if (exists(directory + "/supervisor.json") || exists(directory + "/exit.json")) return 0;
  auto record = read_launch(directory);
  if (!record) {
    std::fprintf(stderr, "%s\n", record.error().message.c_str());
    return 1;
  }
  if (const auto made = make_directories(record->launch.log_dir, 0700); !made) {
    std::fprintf(stderr, "%s\n", made.error().message.c_str());
    return 1;
  }
  return Supervisor(directory, std::move(*record)).run();
}

}  // namespace berth::executor
