#include "executor/rank.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <system_error>
#include <vector>

#include "executor/record.h"
#include "executor/state_file.h"
#include "model/exit_code.h"

namespace berth::executor {

namespace {

constexpr const char* kDefaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

// What failed between fork and exec. The child reports it through a pipe that a successful exec closes.
enum class Stage : int { kDescriptors, kView, kUser, kCheckpoint, kWorkdir, kExec };

struct ChildFailure {
  Stage stage = Stage::kExec;
  int error_number = 0;
  std::size_t closed = 0;  // length of the part of the path that the user may not enter; 0: none
};

struct Pipe {
  Descriptor read_end;
  Descriptor write_end;
};

std::optional<Pipe> open_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  return Pipe{Descriptor(ends[0]), Descriptor(ends[1])};
}

// The two ends of a pseudo-terminal.
struct Terminal {
  Descriptor master;
  Descriptor slave;
};

std::optional<Terminal> open_terminal(const WindowSize& size) {
  Terminal terminal{Descriptor(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)), {}};
  const int master = terminal.master.get();
  if (master < 0 || ::grantpt(master) != 0 || ::unlockpt(master) != 0) return std::nullopt;
  terminal.slave = Descriptor(::ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  // grantpt lets its group write to it, and so any user by write(1).
  if (!terminal.slave.is_open() || ::fchmod(terminal.slave.get(), 0600) != 0) return std::nullopt;
  set_window_size(master, size);
  return terminal;
}

// What the child gets, and what stays here.
struct OpenedStreams {
  Descriptor child_input;  // none: /dev/null
  Descriptor child_output;
  Descriptor child_errors;
  Rank kept = {};
};

std::optional<OpenedStreams> open_streams(const RankStreams& wanted) {
  OpenedStreams opened;
  if (wanted.terminal) {
    auto terminal = open_terminal(wanted.size);
    if (!terminal) return std::nullopt;
    opened.kept.input = Descriptor(::fcntl(terminal->master.get(), F_DUPFD_CLOEXEC, 0));
    opened.child_output = Descriptor(::fcntl(terminal->slave.get(), F_DUPFD_CLOEXEC, 0));
    opened.child_errors = Descriptor(::fcntl(terminal->slave.get(), F_DUPFD_CLOEXEC, 0));
    opened.kept.output = std::move(terminal->master);
    opened.child_input = std::move(terminal->slave);
    if (!opened.child_errors.is_open()) return std::nullopt;
    return opened;
  }
  auto output = open_pipe();
  auto errors = open_pipe();
  auto input = wanted.input ? open_pipe() : Pipe();
  if (!output || !errors || !input) return std::nullopt;
  opened.child_input = std::move(input->read_end);
  opened.kept.input = std::move(input->write_end);
  opened.child_output = std::move(output->write_end);
  opened.kept.output = std::move(output->read_end);
  opened.child_errors = std::move(errors->write_end);
  opened.kept.errors = std::move(errors->read_end);
  return opened;
}

void reset_signals() {
  for (int signo = 1; signo < NSIG; ++signo) ::signal(signo, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

void write_oom_score(int score) {
  const Descriptor file(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
  const std::string text = std::to_string(score);
  if (file.is_open()) (void)!::write(file.get(), text.data(), text.size());
}

// Returns the length of the first directory on the way to `path` that this process may not enter, else 0.
std::size_t find_closed(const std::string& path) {
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    if (::access(path.substr(0, slash).c_str(), X_OK) != 0) return errno == EACCES ? slash : 0;
  }
  return 0;
}

[[noreturn]] void give_up(int failure_fd, Stage stage, const std::string& path = "") {
  ChildFailure failure{stage, errno, 0};
  if (failure.error_number == EACCES) failure.closed = find_closed(path);
  (void)!::write(failure_fd, &failure, sizeof failure);
  ::_exit(127);
}

// Its output is given to the user too, so that it can open /dev/stdout. No program that it runs gains rights by
// a set-user-id bit, as sudo would.
bool become(const TaskUser& user) {
  return ::fchown(1, user.uid, user.gid) == 0 && ::fchown(2, user.uid, user.gid) == 0 &&
         ::setgroups(1, &user.gid) == 0 && ::setresgid(user.gid, user.gid, user.gid) == 0 &&
         ::setresuid(user.uid, user.uid, user.uid) == 0 && ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

struct ChildPlan {
  const TaskLaunch& launch;
  const TaskCgroups& cgroups;
  std::vector<std::string> argv;
  std::vector<std::string> environment;
  pid_t supervisor = 0;
  int oom_score = 0;
  bool has_terminal = false;
  int input_fd = -1;
  int output_fd = -1;
  int errors_fd = -1;
  int failure_fd = -1;
  int view = -1;
};

[[noreturn]] void run_child(ChildPlan& plan) {
  ::setsid();
  join_cgroups(plan.cgroups);
  write_oom_score(plan.oom_score);
  reset_signals();
  ::umask(022);
  const int input_fd = plan.input_fd >= 0 ? plan.input_fd : ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const bool redirected =
      input_fd >= 0 && ::dup2(input_fd, 0) == 0 && ::dup2(plan.output_fd, 1) == 1 && ::dup2(plan.errors_fd, 2) == 2;
  if (!redirected || (plan.has_terminal && ::ioctl(0, TIOCSCTTY, 0) != 0))
    give_up(plan.failure_fd, Stage::kDescriptors);
  if (plan.view >= 0 && ::setns(plan.view, CLONE_NEWNS) != 0) give_up(plan.failure_fd, Stage::kView);
  const bool is_changed = plan.launch.user && ::geteuid() == 0;
  if (is_changed && !become(*plan.launch.user)) give_up(plan.failure_fd, Stage::kUser);
  // The first protection for the case that the supervisor is killed. It is set after the change of user, which clears
  // it.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != plan.supervisor) ::_exit(127);
  const std::string& checkpoints = plan.launch.checkpoint_dir;
  if (is_changed && !checkpoints.empty() && ::access(checkpoints.c_str(), W_OK | X_OK) != 0) {
    give_up(plan.failure_fd, Stage::kCheckpoint, checkpoints);
  }
  const std::string workdir = plan.launch.workdir.empty() ? "/" : plan.launch.workdir;
  if (::chdir(workdir.c_str()) != 0) give_up(plan.failure_fd, Stage::kWorkdir, workdir + "/");
  auto environment = pointers_to(plan.environment);
  auto argv = pointers_to(plan.argv);
  environ = environment.data();  // execvp looks the program up in the PATH of the task
  ::execvp(argv[0], argv.data());
  give_up(plan.failure_fd, Stage::kExec, plan.launch.argv.front());
}

// Returns what the user is kept from, and what to do.
std::string explain_denial(const ChildFailure& failure, const TaskUser& user, const std::string& path) {
  const std::string who =
      "user " + (user.name.empty() ? "" : user.name + " ") + "(uid " + std::to_string(user.uid) + ")";
  if (failure.closed == 0) return who + " has not the right to; chmod it, or name another";
  return who + " may not enter " + path.substr(0, failure.closed) + "; chmod o+x it, or name a place outside of it";
}

StartFailure explain(const ChildFailure& failure, const TaskLaunch& launch) {
  const auto explain_of = [&](const std::string& path) {
    if (failure.error_number == EACCES && launch.user) return explain_denial(failure, *launch.user, path);
    return std::generic_category().message(failure.error_number);
  };
  const std::string why = std::generic_category().message(failure.error_number);
  const bool missing = failure.error_number == ENOENT;
  switch (failure.stage) {
    case Stage::kDescriptors:
      return {126, "cannot redirect its output: " + why};
    case Stage::kView:
      return {126, "cannot enter its mount namespace: " + why};
    case Stage::kUser:
      return {126, "cannot become user " + std::to_string(launch.user->uid) + ": " + why};
    case Stage::kCheckpoint:
      return {126, "cannot use its checkpoint directory " + launch.checkpoint_dir + ": " +
                       explain_of(launch.checkpoint_dir)};
    case Stage::kWorkdir:
      return {126, "cannot enter its working directory " + launch.workdir + ": " + explain_of(launch.workdir)};
    case Stage::kExec:
      if (failure.error_number == EAGAIN || failure.error_number == ENFILE) {
        return {kNodeShortCode, "the machine cannot execute a program: " + why};
      }
      return {missing ? 127 : 126, "cannot execute " + launch.argv.front() + ": " + explain_of(launch.argv.front())};
  }
  return {126, why};
}

// Waits for the exec, or for the report of a failure before it.
std::optional<ChildFailure> hear_of_failure(int failure_fd) {
  ChildFailure failure;
  ssize_t count = 0;
  do {
    count = ::read(failure_fd, &failure, sizeof failure);
  } while (count < 0 && errno == EINTR);
  if (count != static_cast<ssize_t>(sizeof failure)) return std::nullopt;
  return failure;
}

// Returns true when hear_of_failure would return at once, and false if that takes over `most_ms`; negative: any time.
bool is_heard_within(int failure_fd, int most_ms) {
  const std::int64_t deadline = boot_clock_ms() + most_ms;
  while (most_ms >= 0) {
    pollfd waited{failure_fd, POLLIN, 0};
    const std::int64_t left = std::max<std::int64_t>(0, deadline - boot_clock_ms());
    if (::poll(&waited, 1, static_cast<int>(left)) > 0) return true;
    if (left == 0) return false;
  }
  return true;
}

void add_login_of(const TaskUser& user, std::map<std::string, std::string>& variables) {
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 16384> buffer{};
  if (user.name.empty()) ::getpwuid_r(user.uid, &entry, buffer.data(), buffer.size(), &found);
  TaskUser login = user;
  if (login.name.empty()) login.name = found != nullptr ? found->pw_name : std::to_string(user.uid);
  if (login.home.empty()) login.home = found != nullptr ? found->pw_dir : "/";
  if (login.shell.empty()) login.shell = found != nullptr ? found->pw_shell : "/bin/sh";
  variables["HOME"] = login.home;
  variables["USER"] = variables["LOGNAME"] = login.name;
  variables["SHELL"] = login.shell;
}

}  // namespace

void set_window_size(int terminal, const WindowSize& size) {
  winsize wanted{};
  wanted.ws_col = size.columns;
  wanted.ws_row = size.rows;
  ::ioctl(terminal, TIOCSWINSZ, &wanted);
}

Environment compose_environment(const TaskLaunch& launch, std::size_t rank, const std::string& token) {
  std::map<std::string, std::string> variables{{"PATH", kDefaultPath}};
  for (const char* name : {"PATH", "HOME", "LANG", "TZ", "USER"}) {
    if (const char* value = ::getenv(name)) variables[name] = value;
  }
  if (launch.user) add_login_of(*launch.user, variables);
  if (!launch.checkpoint_dir.empty()) variables["BERTH_CHECKPOINT_DIR"] = launch.checkpoint_dir;
  for (const auto& [name, value] : launch.env) variables[name] = value;
  if (rank < launch.rank_env.size()) {
    for (const auto& [name, value] : launch.rank_env[rank]) variables[name] = value;
  }
  variables[std::string(kTokenVariable)] = token;
  return {variables.begin(), variables.end()};
}

std::variant<Rank, StartFailure> start_rank(const TaskLaunch& launch, std::size_t rank, const std::string& token,
                                            const TaskCgroups& cgroups, int oom_score, int view,
                                            const RankStreams& streams, int most_ms) {
  auto opened = open_streams(streams);
  if (!opened) {
    const char* what = streams.terminal ? "a pseudo-terminal" : "a pipe";
    return StartFailure{kNodeShortCode, system_error("open", what, errno).message};
  }
  auto word = open_pipe();
  if (!word) return StartFailure{kNodeShortCode, system_error("open", "a pipe", errno).message};
  ChildPlan plan{launch,
                 cgroups,
                 launch.argv,
                 {},
                 ::getpid(),
                 oom_score,
                 streams.terminal,
                 opened->child_input.get(),
                 opened->child_output.get(),
                 opened->child_errors.get(),
                 word->write_end.get(),
                 view};
  for (const auto& [name, value] : compose_environment(launch, rank, token))
    plan.environment.push_back(name + "=" + value);
  const pid_t pid = ::fork();
  if (pid < 0) {
    return StartFailure{kNodeShortCode, "the machine has no process ids or memory left: " +
                                            system_error("fork", "a rank", errno).message};
  }
  if (pid == 0) run_child(plan);
  word->write_end.reset();
  if (!is_heard_within(word->read_end.get(), most_ms)) {
    ::kill(pid, SIGKILL);  // and no wait for its end: a call that hangs may not be interrupted
    return StartFailure{kNodeShortCode, "it did not start within " + std::to_string(most_ms) +
                                            " ms: its directory or program is on a file system that hangs, or it "
                                            "was stopped"};
  }
  if (const auto failure = hear_of_failure(word->read_end.get())) {
    if (most_ms < 0) ::waitpid(pid, nullptr, 0);
    return explain(*failure, launch);
  }
  Rank born = std::move(opened->kept);
  born.process = see_process(pid).value_or(ProcessSeen{pid, 0, 0, pid, '?'});
  for (const Descriptor* kept : {&born.output, &born.errors, &born.input}) {
    if (kept->is_open()) ::fcntl(kept->get(), F_SETFL, ::fcntl(kept->get(), F_GETFL) | O_NONBLOCK);
  }
  return born;
}

}  // namespace berth::executor
