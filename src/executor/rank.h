#pragma once
// A rank: one process of a task, and how it is started without anything inherited from the server.

#include <string>
#include <variant>

#include "executor/cgroup.h"
#include "executor/descriptor.h"
#include "executor/process.h"
#include "executor/task.h"
#include "model/shell_message.h"

namespace berth::executor {

struct Rank {
  ProcessSeen process;
  Descriptor output;  // read ends of its stdout and stderr; with a terminal the terminal's master, and none
  Descriptor errors;
  Descriptor input;  // the write end of its stdin, or the master; none: it has /dev/null
  bool ended = false;
  int wait_status = 0;  // after its end: the status from waitpid
};

// Why a program did not start, with the codes of a shell: 127 it is missing, 126 it may not be executed; and 75, the
// machine had not the means.
struct StartFailure {
  int code = 0;
  std::string message;
};

// What a process has for its standard streams.
struct RankStreams {
  bool terminal = false;  // a pseudo-terminal of its own for all three, else pipes
  bool input = false;     // of pipes: one for stdin, too
  WindowSize size = {};
};

// Returns the whole environment of one rank. From weakest to strongest: PATH, HOME, LANG, TZ and USER of the server
// (of launch.user, if given, HOME, USER, LOGNAME and SHELL), launch.env, rank_env, and the variables of the executor.
Environment compose_environment(const TaskLaunch& launch, std::size_t rank, const std::string& token);

// Sets the size of a terminal; its foreground processes get SIGWINCH.
void set_window_size(int terminal, const WindowSize& size);

// Forks and executes. `view` is the mount namespace of the task; negative: that of its supervisor. Returns when the
// program runs, or has failed to start. After `most_ms`, where that is not negative, the process is killed and has
// failed to start: a file system that hangs, or a SIGSTOP, may hold it. Then, and after any other failure of such a
// start, the process is still to be reaped.
std::variant<Rank, StartFailure> start_rank(const TaskLaunch& launch, std::size_t rank, const std::string& token,
                                            const TaskCgroups& cgroups, int oom_score, int view = -1,
                                            const RankStreams& streams = {}, int most_ms = -1);

}  // namespace berth::executor
