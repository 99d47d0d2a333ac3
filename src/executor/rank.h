#pragma once
// One process of a task: how it is born, with nothing of the server's in it.

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
  int wait_status = 0;  // once ended, as waitpid gives it
};

// Why a program did not start, in the terms of a shell: 127 it is missing, 126 it may not be executed.
struct StartFailure {
  int code = 0;
  std::string message;
};

// The whole environment of one rank. From weakest to strongest: PATH, HOME, LANG, TZ and USER as they are here (HOME
// and USER of launch.user where that is given), launch.env, rank_env, and what the executor itself sets.
Environment compose_environment(const TaskLaunch& launch, std::size_t rank, const std::string& token);

// Forks and executes. Returns once the program runs, or did not start.
std::variant<Rank, StartFailure> start_rank(const TaskLaunch& launch, std::size_t rank, const std::string& token,
                                            const TaskCgroups& cgroups, int oom_score);

}  // namespace berth::executor
