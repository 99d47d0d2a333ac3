// planted_test: every planted bug is found by the simulation within kMostEvents events. Prints a table: the bug, the
// seed, the events until it was found, and what was broken. Each life runs in a process of its own, because some bugs
// end in a failed CHECK, which counts as found.

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "base/planted.h"
#include "sim/world/simulation.h"

namespace {

constexpr std::uint64_t kMostEvents = 200'000;
constexpr std::uint64_t kSteps = 400;

struct Found {
  bool found = false;
  std::uint64_t events = 0;
  char what[200] = {};
};

Found live(berth::Bug bug, std::uint64_t seed) {
  int ends[2];
  if (pipe(ends) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(3);
    berth::planted_bug() = bug;
    Found found;
    const berth::sim::Verdict verdict = berth::sim::simulate(seed, kSteps, 0, {});
    found.events = verdict.events;
    found.found = verdict.violation.has_value();
    std::strncpy(found.what, verdict.violation.value_or("").c_str(), sizeof found.what - 1);
    const bool written = write(ends[1], &found, sizeof found) == static_cast<ssize_t>(sizeof found);
    _exit(written ? 0 : 3);
  }
  close(ends[1]);
  Found found;
  if (read(ends[0], &found, sizeof found) != static_cast<ssize_t>(sizeof found)) found = {};
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) {
    found.found = true;
    std::strncpy(found.what, "a CHECK in the core failed", sizeof found.what - 1);
  }
  return found;
}

}  // namespace

int main() {
  int missed = 0;
  std::printf("%-24s %6s %10s  %s\n", "planted bug", "lives", "events", "found as");
  for (std::size_t b = 0; b < berth::kBugNames.size(); ++b) {
    const auto bug = static_cast<berth::Bug>(b);
    std::uint64_t events = 0;
    std::uint64_t lives = 0;
    Found found;
    while (!found.found && events < kMostEvents) {
      found = live(bug, ++lives);
      events += found.events;
    }
    const bool right = found.found == (bug != berth::Bug::kNone);
    if (!right) ++missed;
    std::printf("%-24s %6llu %10llu  %s%s\n", std::string(berth::kBugNames[b]).c_str(),
                static_cast<unsigned long long>(lives), static_cast<unsigned long long>(events),
                right ? "" : "WRONG: ", found.found ? found.what : "nothing is broken");
    std::fflush(stdout);
  }
  std::printf("%s\n", missed == 0 ? "every planted bug was found, and nothing without one" : "NOT as it should be");
  return missed == 0 ? 0 : 1;
}
