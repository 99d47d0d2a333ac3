#include "executor/process.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace berth::executor {

TEST_CASE("a signal is not sent to another process that has the same pid by now") {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  const auto seen = see_process(child);
  REQUIRE(seen.has_value());
  ProcessSeen former = *seen;
  --former.start_ticks;
  signal_process(former, SIGKILL);
  // It stops only if the first signal has not killed it.
  signal_process(*seen, SIGSTOP);
  int status = 0;
  REQUIRE(::waitpid(child, &status, WUNTRACED) == child);
  CHECK(WIFSTOPPED(status));
  signal_process(*seen, SIGKILL);
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
}

}  // namespace berth::executor
