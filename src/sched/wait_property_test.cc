// Tiny fleets with time limits, maintenance windows and a held start, played on: a job starts when it is told it would.

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>

#include "base/random.h"
#include "sched/counterfactual.h"
#include "sched/fleet_fixture.h"

namespace berth {
namespace {

using sched::Change;
using sched::ChangeKind;

int wait_instances() { return std::getenv("BERTH_LONG") != nullptr ? 400'000 : 20'000; }

struct ClockedFleet : FleetFixture {
  explicit ClockedFleet(std::uint64_t seed) : random(seed) {
    QueueConfig a = queue("a");
    if (random.chance(300)) a.max.gpu_milli = random.between(3, 8) * kMilli;
    ClusterConfig both = config({a, queue("b")});
    both.scheduling.hold_after_s = 172'800;  // by time limits alone
    command(ApplyConfig{both, "op"});
    const std::int64_t nodes = random.between(1, 4);
    for (std::int64_t i = 0; i < nodes; ++i) {
      command(RegisterNode{node("n" + std::to_string(i), static_cast<std::int32_t>(random.between(1, 3)))});
      if (random.chance(300)) plan("n" + std::to_string(i));
    }
    for (std::int64_t i = random.between(1, 5); i > 0; --i) submit(random_job());
    cycle();
    cancel_who_waits({});
    owner = submit(random_job());
    settle();
    cycle();
    if (!state.job(owner)->start_hold) owner = JobId::none();
    cancel_who_waits({owner});
  }

  void plan(const std::string& name) {
    PlanMaintenance window;
    window.nodes = {name};
    window.from = now + random.between(50, 1500) * 1000;
    window.for_s = random.between(50, 1500);
    command(window);
  }

  JobSpec random_job() {
    JobSpec spec = job(random.chance(600) ? "a" : "b", static_cast<std::int32_t>(random.between(1, 3)),
                       static_cast<std::int32_t>(random.between(1, 3)));
    if (random.chance(750)) spec.time_limit_s = random.between(60, 2000);
    spec.checkpoint.on_signal = random.chance(400);
    return spec;
  }

  void cancel_who_waits(const std::vector<JobId>& spared) {
    std::vector<JobId> waiting;
    state.jobs().for_each([&](const state::JobState& one) {
      if (one.in_pending && std::find(spared.begin(), spared.end(), one.id) == spared.end()) waiting.push_back(one.id);
    });
    for (const JobId id : waiting) command(CancelJob{id, "op"});
  }

  void settle() {
    control::Batch batch(state, now);
    control::settle(batch);
  }

  // When what runs ends by its limit, or has used up the grace of its stop.
  Timestamp over(JobId id) const {
    const state::JobState& one = *state.job(id);
    if (one.attempt->stopping()) return one.attempt->stop->deadline;
    return one.limit_ends(one.attempt->started);
  }

  Timestamp next_event() const {
    Timestamp next = Timestamp::never();
    const auto at = [&](Timestamp when) {
      if (when > now) next = std::min(next, when);
    };
    for (const JobId id : state.running()) at(over(id));
    for (const auto& [name, window] : state.maintenance()) {
      at(window.from);
      at(window.to);
    }
    for (const auto& [when, id] : state.departures()) at(when);
    return next;
  }

  // Nobody comes back who had to leave.
  void play_to(Timestamp when, JobId asked) {
    now = when;
    std::vector<JobId> leaving;
    for (const JobId id : state.running()) {
      if (over(id) <= now) leaving.push_back(id);
    }
    for (const JobId id : leaving) exit(id, 0);
    settle();
    cancel_who_waits({owner, asked});
    while (!cycle().decisions.empty()) settle();
    note_owner();
  }

  void promise() {
    if (owner.valid()) promised = state.job(owner)->start_hold;
  }

  // Whether its start is held at another time or elsewhere by now, or it has started otherwise.
  void note_owner() {
    if (!promised) return;
    const state::JobState& one = *state.job(owner);
    if (one.start_hold) {
      held_anew = held_anew || one.start_hold->start != promised->start ||
                  !same_nodes(one.start_hold->placements, promised->placements);
      return;
    }
    std::vector<TaskPlacement> there;
    for (std::size_t t = 0; one.attempt && t < one.attempt->tasks.size(); ++t)
      there.push_back(one.attempt->tasks[t].placement);
    const bool in_time = one.attempt && one.attempt->started == promised->start;
    held_anew = held_anew || !in_time || !same_nodes(there, promised->placements);
    promised.reset();  // it has started, and does not come back either
    owner = JobId::none();
  }

  static bool same_nodes(const std::vector<TaskPlacement>& some, const std::vector<TaskPlacement>& others) {
    const auto nodes = [](const std::vector<TaskPlacement>& placements) {
      std::multiset<NodeId> set;
      for (const TaskPlacement& one : placements) set.insert(one.node);
      return set;
    };
    return nodes(some) == nodes(others);
  }

  // When it starts, if it does within so many events.
  std::optional<Timestamp> starts_at(JobId asked) {
    for (int i = 0; i < 100; ++i) {
      if (runs(asked)) return state.job(asked)->attempt->started;
      const Timestamp next = next_event();
      if (next.is_never()) return std::nullopt;
      play_to(next, asked);
    }
    return std::nullopt;
  }

  Random random;
  JobId owner;  // of a held start, or none
  std::optional<state::StartHold> promised;
  bool held_anew = false;
};

std::string text_of(const std::optional<Timestamp>& when) {
  return when ? std::to_string((*when - Timestamp{1'000'000}) / 1000) + "s" : std::string("never");
}

std::optional<Timestamp> told_time(ClockedFleet& fleet, JobId asked) {
  for (const Change& change : sched::smallest_changes(fleet.state, asked, fleet.now)) {
    if (change.kind == ChangeKind::kWait) return change.at;
  }
  return std::nullopt;
}

}  // namespace

// Left out is where a start is held anew meanwhile, or more is known of run times (docs/why.md).
TEST_CASE("a job starts when it is told that it would, and not before") {
  std::int64_t told = 0;
  std::int64_t beside_windows = 0;
  std::int64_t behind_holds = 0;
  std::int64_t left_out = 0;
  for (int i = 0; i < wait_instances(); ++i) {
    ClockedFleet fleet(static_cast<std::uint64_t>(i));
    const JobId asked = fleet.submit(fleet.random_job());
    fleet.cycle();
    if (fleet.runs(asked)) continue;
    fleet.promise();
    const auto when = told_time(fleet, asked);
    const bool windows = !fleet.state.maintenance().empty();
    const bool holds = fleet.promised.has_value();
    const std::int64_t expected_s = fleet.state.job(asked)->expected_s;
    const auto started = fleet.starts_at(asked);
    const bool learned = fleet.state.job(asked)->expected_s != expected_s;  // how long it runs: it may pass then
    left_out += fleet.held_anew || learned;
    if (fleet.held_anew || learned) continue;
    told += when.has_value();
    beside_windows += when && windows;
    behind_holds += when && holds;
    if (when == started) continue;
    FAIL_CHECK("instance " << i << ": told " << text_of(when) << ", starts " << text_of(started));
    break;
  }
  MESSAGE(told << " told, " << beside_windows << " of them beside windows and " << behind_holds
               << " beside held starts; " << left_out << " left out");
  CHECK(beside_windows > wait_instances() / 10);
  CHECK(behind_holds > wait_instances() / 20);
  CHECK(left_out < told / 10);
}

}  // namespace berth
