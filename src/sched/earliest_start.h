#pragma once
// When a job that finds no places now could start: when enough of what runs has ended, and when maintenance windows
// that close nodes to it are over. Which of both comes last is when its start is held (sched/backfill.h).

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "base/timestamp.h"
#include "model/plan.h"
#include "sched/place.h"
#include "state/state.h"
#include "state/trial.h"

namespace berth::sched {

// When a job is expected to be gone, and when it is for certain; never() where nothing says so.
struct Ending {
  JobId job;
  Timestamp expected = Timestamp::never();
  Timestamp certain = Timestamp::never();
};
// Of a job that starts now.
Ending ending(const state::State& state, const state::JobState& job, std::span<const TaskPlacement> placements,
              Timestamp now);

// What frees places at a time: the end of a job or, of no job, that of a window.
struct Relief {
  Timestamp when;
  JobId job;
  auto operator<=>(const Relief&) const = default;
};

// The ends of what runs, of what a cycle starts and of windows, worked out when they are first asked for and once for
// all jobs of the cycle.
class Reliefs {
 public:
  Reliefs(const state::State& state, Timestamp now, const std::vector<Ending>& starting)
      : state_(state), now_(now), starting_(starting) {}
  // In their order; without estimates only those that are certain.
  const std::vector<Relief>& in_order(bool by_estimates);

 private:
  const state::State& state_;
  Timestamp now_;
  const std::vector<Ending>& starting_;
  std::array<std::optional<std::vector<Relief>>, 2> reliefs_;
};

// The earliest start of a job that finds no places now, and its places then. Nothing where the ends that it would need
// are not known, or not for certain and it has not waited long enough for estimates.
std::optional<HoldDecision> earliest_start(state::Trial& trial, state::State& state, JobId job, Timestamp now,
                                           Reliefs& reliefs, PlaceWork& work);

// Whether the job has waited so long that it is held a start by estimates too.
bool trusts_estimates(const state::State& state, const state::JobState& job, Timestamp now);
bool trusts_estimates(const state::State& state, Timestamp waits_since, Timestamp now);

// Asks, until it is rolled back, what would start then, but not before now, on nodes whose windows are over.
void look_ahead(state::Trial& trial, Timestamp when, Timestamp now);

}  // namespace berth::sched
