// The least of a server: opens an executor and starts one task. Its tester kills it at a chosen system call.
// Usage: kill_sweep_server RUN_DIR SUPERVISOR JOB SCRIPT LOG_DIR MARK

#include <cstdlib>

#include "executor/executor.h"

int main(int argc, char** argv) {
  using namespace berth::executor;
  if (argc != 7) return 2;
  const auto executor = Executor::open({argv[1], {argv[2]}});
  if (!executor) return 1;
  TaskLaunch launch;
  launch.key = {std::strtoull(argv[3], nullptr, 10), 1, 0, 0};
  launch.argv = {"sh", "-c", argv[4]};
  launch.log_dir = argv[5];
  launch.env = {{"BERTH_TEST_DIRECTORY", argv[6]}};
  launch.workdir = argv[6];
  return (*executor)->start(launch) ? 0 : 1;
}
