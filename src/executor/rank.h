#pragma once
// A rank: one process of a task, and how it is started without anything inherited from the server.

#include <string>
#include <variant>

#include "executor/cgroup.h"
#include "executor/descriptor.h"
#include "executor/process.h"
#include "executor/task.h"

namespace berth::executor {

struct Rank {
  ProcessSeen process;
  Descriptor output;  // read ends of its stdout and stderr
  Descriptor errors;
  bool ended = false;
  int wait_status = 0;  // after its end: the status from waitpid
};

// Why a program did not start, with the codes of a shell: 127 it is missing, 126 it may not be executed; and 75, the
// machine had not the means.
struct StartFailure {
  int code = 0;
  std::string message;
};

// Returns the whole environment of one rank. From weakest to strongest: PATH, HOME, LANG, TZ and USER of the server
// (of launch.user, if given, HOME, USER, LOGNAME and SHELL), launch.env, rank_env, and the variables of the executor.
Environment compose_environment(const TaskLaunch& launch, std::size_t rank, const std::string& token);

// Forks and executes. `view` is the mount namespace of the task; negative: that of its supervisor. Returns when the
// program runs, or has failed to start.
std::variant<Rank, StartFailure> start_rank(const TaskLaunch& launch, std::size_t rank, const std::string& token,
                                            const TaskCgroups& cgroups, int oom_score, int view = -1);

}  // namespace berth::executor
