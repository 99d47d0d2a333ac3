#include "executor/task_process.h"

#include <doctest/doctest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace berth::executor {
namespace {

TEST_CASE("the cgroup of a task is known by its place, wherever that is") {
  CHECK(is_task_cgroup("0::/berth-0123456789abcdef/12.1.0.1"));
  CHECK(is_task_cgroup("4:memory:/system.slice/berth.service/berth-0123456789abcdef/12.1.0.1"));
  CHECK(is_task_cgroup("0::/../../berth-0123456789abcdef"));
  CHECK(is_task_cgroup("0::/berth-control/berth-0123456789abcdef/1"));
  CHECK_FALSE(is_task_cgroup("0::/berth-control"));
  CHECK_FALSE(is_task_cgroup("0::/system.slice/berth.service"));
  CHECK_FALSE(is_task_cgroup("0::/user-berth-0123456789abcdef/x"));
  CHECK_FALSE(is_task_cgroup("0::/berth-0123456789abcdef0/x"));
  CHECK_FALSE(is_task_cgroup("0::/berth-0123456789ABCDEF/x"));
  CHECK_FALSE(is_task_cgroup(""));
}

// The child waits until the pipe is closed.
pid_t waiting_child(int read_end) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  char byte = 0;
  (void)!::read(read_end, &byte, 1);
  ::_exit(0);
}

TEST_CASE("what is below a supervisor belongs to a task; the supervisor's parent does not") {
  CHECK(belongs_to_task(::getpid()) == false);
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t supervisor = ::fork();
  if (supervisor == 0) {
    ::close(ends[1]);
    ::prctl(PR_SET_NAME, "berth-supervise");
    const pid_t child = waiting_child(ends[0]);
    const bool found = belongs_to_task(child) == true && belongs_to_task(::getpid()) == true;
    ::kill(child, 9);
    ::_exit(found ? 7 : 0);
  }
  int status = 0;
  REQUIRE(::waitpid(supervisor, &status, 0) == supervisor);
  CHECK(WEXITSTATUS(status) == 7);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_CASE("of a process that has ended it cannot be told") {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  CHECK_FALSE(belongs_to_task(child).has_value());
}

}  // namespace
}  // namespace berth::executor
