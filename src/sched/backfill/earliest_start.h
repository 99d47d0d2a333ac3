#pragma once
// When a job that finds no places now could start: when enough of what runs has ended, and when maintenance windows
// that close nodes to it are over. Which of both comes last is when its start is held (sched/backfill/backfill.h).

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

// When a job is expected to be gone, and when it is for certain; never() where nothing says so.
struct ExpectedEnd {
  JobId job;
  Timestamp expected = Timestamp::never();
  Timestamp certain = Timestamp::never();
};
// Of a job that starts now.
ExpectedEnd expected_end(const state::State& state, const state::JobState& job,
                         std::span<const TaskPlacement> placements, Timestamp now);

// What frees places at a time: the end of a job or, of no job, that of a window.
struct Release {
  Timestamp when;
  JobId job;
  auto operator<=>(const Release&) const = default;
};

// The ends of what runs, of what a cycle starts and of windows, in their order; without estimates only those that are
// certain. They are worked out as far as somebody asks: until its turn comes, what runs stands where it would end at
// the earliest by its row in the table of what runs.
class ReleasesInOrder {
 public:
  ReleasesInOrder(const state::State& state, Timestamp now, const std::vector<ExpectedEnd>& starting, bool by_estimates,
                  SearchStats& work);
  // Works out the first `count`, and says how many of them there are.
  std::size_t work_out(std::size_t count, SearchStats& work);
  const Release& operator[](std::size_t place) const { return in_order_[place]; }

 private:
  static constexpr std::uint32_t kExact = std::numeric_limits<std::uint32_t>::max();
  struct Entry {
    Release release;
    std::uint32_t row = kExact;  // of whose end that is the earliest
    auto operator<=>(const Entry&) const = default;
  };
  Timestamp earliest_end(const state::RunningRow& row) const;
  void work_out(Entry& entry, SearchStats& work);

  const state::State& state_;
  Timestamp now_;
  bool by_estimates_;
  Timestamp next_window_ = Timestamp::never();  // the first to begin: who is in its way has left by then
  state::ExpectedEnds ends_;
  std::vector<Release> in_order_;
  std::vector<Entry> heap_;  // the rest, the first on top
};

// Those of one cycle, for all its jobs: each order is made when it is first asked for.
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

// The earliest start of a job that finds no places now, and its places then. Nothing where the ends that it would need
// are not known, or not for certain and it has not waited long enough for estimates.
std::optional<ReserveDecision> earliest_start(state::Transaction& transaction, state::State& state, JobId job,
                                              Timestamp now, Releases& releases, SearchStats& work);

// Whether the job has waited so long that it is held a start by estimates too.
bool trusts_estimates(const state::State& state, const state::JobState& job, Timestamp now);
bool trusts_estimates(const state::State& state, Timestamp waits_since, Timestamp now);

// Asks, until it is rolled back, what would start then, but not before now, on nodes whose windows are over.
void look_ahead(state::Transaction& transaction, Timestamp when, Timestamp now);

}  // namespace berth::sched
