// planted_test [BUG]...: the simulation finds every planted bug within the number of events that stands beside it here,
// three to ten times what it needed when the bug was planted, and finds nothing where there is none. Prints a table:
// the bug, the lives and events until it was found, the bound, and what was broken. Each life runs in a process of its
// own, because some bugs end in a failed CHECK, which counts as found. A bug that takes minutes to be found is looked
// for with BERTH_LONG=1, or where it is named; else it is skipped.

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/planted.h"
#include "sim/world/simulation.h"

namespace {

using berth::Bug;

constexpr std::uint64_t kSteps = 400;
constexpr std::uint64_t kMostEventsAtOnce = 1'000'000;  // a bug with a higher bound takes minutes

// Where many wait for few nodes there are more holds, promises and sleepers in the same number of events.
enum class Fleet { kAny, kCrowded };

struct Bound {
  Bug bug;
  std::uint64_t most_events;
  Fleet fleet = Fleet::kAny;
};

berth::sim::SimulationShape shape_of(Fleet fleet) {
  berth::sim::SimulationShape shape;
  if (fleet == Fleet::kAny) return shape;
  shape.most_nodes = 6;
  shape.most_queues = 6;
  return shape;
}

constexpr auto kBounds = std::to_array<Bound>({
    {Bug::kNone, 100'000},
    {Bug::kNone, 100'000, Fleet::kCrowded},
    {Bug::kReclaimWithin, 100'000},
    {Bug::kGangPartial, 10'000},
    {Bug::kMaxOnlyAtLeaf, 20'000},
    {Bug::kNominationIgnored, 20'000},
    {Bug::kShareAcrossDomains, 20'000},
    {Bug::kCordonIgnored, 2'000},
    {Bug::kForgottenCharge, 1'000},
    {Bug::kRetryCountsPreempt, 100'000},
    {Bug::kTimerLost, 5'000},
    {Bug::kKeyLostOnRestart, 60'000},
    {Bug::kPendingLost, 10'000},
    {Bug::kLateReport, 20'000},
    {Bug::kUnknownFreed, 2'000},
    {Bug::kPromotionOrder, 20'000},
    {Bug::kVictimsNotLetOff, 20'000},
    {Bug::kDoubleStart, 1'000},
    {Bug::kEffectsBeforeAppend, 1'000},
    {Bug::kPromotionNotBilled, 20'000},
    {Bug::kLostIsIdle, 20'000},
    {Bug::kReservationNotTold, 300'000, Fleet::kCrowded},
    {Bug::kParkedNotRequeued, 3'000'000},
    {Bug::kGrowsTooFar, 2'000},
    {Bug::kShrinkNotBooked, 20'000},
    {Bug::kUpdateAllAtOnce, 100'000},
    {Bug::kLevelIgnored, 10'000},
    {Bug::kFlapIgnored, 100'000},
    {Bug::kMassLossIgnored, 1'000'000},
    {Bug::kNoticeIgnored, 500'000},
    {Bug::kPoolClassIgnored, 100'000},
    {Bug::kWindowIgnored, 10'000},
    {Bug::kWindowNotLeft, 20'000},
    {Bug::kUsedGuaranteeLost, 50'000},
    {Bug::kGuaranteeNotRestored, 50'000},
    {Bug::kTermsIgnored, 50'000},
    {Bug::kQueueRateIgnored, 500'000},
    {Bug::kPhantomNode, 2'000},
    {Bug::kClockBelieved, 5'000},
    {Bug::kHungSupervisor, 10'000},
    {Bug::kForgedExit, 10'000},
    {Bug::kBudgetIgnored, 100'000},
    {Bug::kMarkToldTwice, 100'000},
    {Bug::kMonthNotBegun, 100'000},
    {Bug::kForeignIgnored, 20'000},
    {Bug::kForbiddenShare, 20'000},
});
// No bug at all is tried on both fleets. kGpuUnchecked is a bug of a machine: tests/gpu_handover finds it.
static_assert(kBounds.size() == berth::kBugNames.size());

struct Found {
  bool found = false;
  std::uint64_t events = 0;
  char what[200] = {};
};

Found live(const Bound& bound, std::uint64_t seed) {
  int ends[2];
  if (pipe(ends) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(3);
    berth::planted_bug = bound.bug;
    Found found;
    const berth::sim::Verdict verdict = berth::sim::simulate(seed, kSteps, 0, shape_of(bound.fleet));
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

// One line of the table; whether it is as it should be.
bool hunt(const Bound& bound) {
  std::uint64_t events = 0;
  std::uint64_t lives = 0;
  Found found;
  while (!found.found && events < bound.most_events) {
    found = live(bound, ++lives);
    events += found.events;
  }
  const bool should = bound.bug != Bug::kNone;
  const bool right = found.found == should && (!should || events <= bound.most_events);
  std::printf("%-24s %6llu %10llu %10llu  %s%s\n", std::string(name_of(bound.bug)).c_str(),
              static_cast<unsigned long long>(lives), static_cast<unsigned long long>(events),
              static_cast<unsigned long long>(bound.most_events),
              right ? "" : "WRONG: ", found.found ? found.what : "nothing is broken");
  std::fflush(stdout);
  return right;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string_view> only(argv + 1, argv + argc);
  const bool patient = std::getenv("BERTH_LONG") != nullptr || !only.empty();
  int asked = 0;
  int failed = 0;
  int skipped = 0;
  std::printf("%-24s %6s %10s %10s  %s\n", "planted bug", "lives", "events", "at most", "found as");
  for (const Bound& bound : kBounds) {
    if (!only.empty() && std::find(only.begin(), only.end(), name_of(bound.bug)) == only.end()) continue;
    if (!patient && bound.most_events > kMostEventsAtOnce) {
      std::printf("SKIPPED: planted bug %s takes up to %llu events; with BERTH_LONG=1 it is looked for\n",
                  std::string(name_of(bound.bug)).c_str(), static_cast<unsigned long long>(bound.most_events));
      ++skipped;
      continue;
    }
    ++asked;
    failed += hunt(bound) ? 0 : 1;
  }
  std::printf("%d passed, %d failed, %d skipped\n", asked - failed, failed, skipped);
  return failed == 0 && asked > 0 ? 0 : 1;
}
