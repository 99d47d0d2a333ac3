#pragma once
// Earliest start: when a job that finds no places now could start. Enough of the running jobs must have ended, and
// maintenance windows that close nodes to it must be over. The later of both is the start of its backfill reservation
// (sched/backfill/backfill.h).

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "base/timestamp.h"
#include "model/plan.h"
#include "sched/place/place.h"
#include "state/estimate.h"
#include "state/state.h"
#include "state/transaction.h"

namespace berth::sched {

// When a job is expected to end, and when it ends for certain; never() if that is not known.
struct ExpectedEnd {
  JobId job;
  Timestamp expected = Timestamp::never();
  Timestamp certain = Timestamp::never();
};
// Returns the ends of a job that starts now at `placements`.
ExpectedEnd expected_end(const state::State& state, const state::JobState& job,
                         std::span<const TaskPlacement> placements, Timestamp now);

// An event that frees places: the end of a job or, with no job, the end of a maintenance window.
struct Release {
  Timestamp when;
  JobId job;
  auto operator<=>(const Release&) const = default;
};

// The releases in order: ends of running jobs, of jobs that this cycle starts, and of maintenance windows. Without
// estimates only certain ends are in it. Ends are worked out only as far as they are needed: before its turn, a running
// job is sorted by the earliest end that its row in the running table allows.
class ReleasesInOrder {
 public:
  ReleasesInOrder(const state::State& state, Timestamp now, const std::vector<ExpectedEnd>& starting, bool by_estimates,
                  SearchStats& work);
  // Works out the first `count` releases. Returns how many of them there are.
  std::size_t work_out(std::size_t count, SearchStats& work);
  const Release& operator[](std::size_t place) const { return in_order_[place]; }

 private:
  static constexpr std::uint32_t kExact = std::numeric_limits<std::uint32_t>::max();
  struct Entry {
    Release release;
    std::uint32_t row = kExact;  // running table row whose earliest possible end this is
    auto operator<=>(const Entry&) const = default;
  };
  Timestamp earliest_end(const state::RunningRow& row) const;
  void work_out(Entry& entry, SearchStats& work);

  const state::State& state_;
  Timestamp now_;
  bool by_estimates_;
  Timestamp next_window_ = Timestamp::never();  // begin of the first window: jobs in its way have left by then
  state::ExpectedEnds ends_;
  std::vector<Release> in_order_;
  std::vector<Entry> heap_;  // the other releases, the first on top
};

// The releases of one cycle, for all its jobs. Each order is made on first use.
class Releases {
 public:
  Releases(const state::State& state, Timestamp now, const std::vector<ExpectedEnd>& starting)
      : state_(state), now_(now), starting_(starting) {}
  ReleasesInOrder& in_order(bool by_estimates, SearchStats& work);

 private:
  const state::State& state_;
  Timestamp now_;
  const std::vector<ExpectedEnd>& starting_;
  std::array<std::optional<ReleasesInOrder>, 2> releases_;
};

// Returns the earliest start of a job that finds no places now, and its places then. Returns nothing if the ends that
// it needs are not known, or are only estimates and the job has not waited long enough to trust them.
std::optional<ReserveDecision> earliest_start(state::Transaction& transaction, state::State& state, JobId job,
                                              Timestamp now, Releases& releases, SearchStats& work);

// Returns true if the job has waited so long (backfill_after) that estimates count for its reservation too.
bool trusts_estimates(const state::State& state, const state::JobState& job, Timestamp now);
bool trusts_estimates(const state::State& state, Timestamp waits_since, Timestamp now);

// Makes the state answer for the time `when` (at least `now`) until it is rolled back: windows that are over by then
// are gone.
void look_ahead(state::Transaction& transaction, Timestamp when, Timestamp now);

}  // namespace berth::sched
