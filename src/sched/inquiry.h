#pragma once
// One inquiry into what would let a waiting job start now (sched/counterfactual.h): every change is tried on the undo
// log of the state before it is told. What the job itself could ask otherwise is in counterfactual.cc, what others
// would have to give, limits and places, in counterfactual_others.cc.

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sched/change.h"
#include "sched/counterfactual.h"
#include "sched/place.h"
#include "state/state.h"

namespace berth::sched {

constexpr std::size_t kMostVictims = 64;  // a longer list helps nobody, and each member costs tries
constexpr std::size_t kMostNodes = 64;

bool is_quota(const Reason& why);

class Inquiry {
 public:
  Inquiry(state::State& state, JobId id, Timestamp now, const Effort& effort)
      : state_(state), job_(*state.job(id)), now_(now), effort_(effort) {}

  std::vector<Change> run();
  bool starts(const Change& change, Reason* why = nullptr);

 private:
  bool spent() const { return tries_ >= effort_.tries || work_.nodes_scored >= effort_.nodes_scored; }
  void tell(std::optional<Change> change);
  JobId taken_by(const Change& change);
  void try_names(ChangeKind kind, std::size_t group, const std::set<std::string>& names);

  std::optional<Change> priority(JobId head);
  std::optional<Change> time_limit();
  std::optional<Change> wait();
  void start_held(state::Trial& trial, Timestamp when) const;
  Timestamp held_end(JobId owner, const state::StartHold& hold) const;
  std::optional<Change> uncordon();
  void other_nodes(std::size_t group);
  void smaller_asks(std::size_t group);
  void smaller_profile(std::size_t group);
  void less_beside_growth(ChangeKind kind, std::size_t group, std::int64_t from, std::int64_t unit);
  void wider_level();
  void wider_group_level(std::size_t group);
  void without_term();
  void other_ports();
  void other_numa(std::size_t group);
  void without_image(std::size_t group);
  bool less_may_be_harder(const Change& change) const;
  std::optional<Change> largest(Change change, std::int64_t low, std::int64_t unit);
  std::optional<Change> largest(ChangeKind kind, std::size_t group, std::int64_t from, std::int64_t low,
                                std::int64_t unit);
  Change raise_limits();
  bool add_raise(Change& change, const Reason& why) const;
  void tighten(Change& change);
  std::optional<Change> evict(std::vector<Raise> raises);
  bool add_victims_below(Change& change, const Reason& why) const;
  bool add_neighbours(Change& change, NodeId node) const;
  bool add_neighbours_somewhere(Change& change, std::size_t group);
  bool add_victims_on_nodes(Change& change, const std::vector<NodeId>& nodes, std::size_t& next,
                            std::size_t many) const;
  std::vector<NodeId> nearly_fitting_nodes(const Reason& why, std::size_t group) const;
  bool may_leave(JobId id, const Change& change) const;
  std::optional<Shrink> all_growth_of(JobId id) const;
  void keep_most(Change& change);
  void spare(Change& change);
  struct Cost {
    std::int32_t priority = 0;
    std::int64_t loss = 0;
    std::int64_t negated_start = 0;
    JobId job;
  };
  Cost cost_of(const state::RunningRow& row) const;
  static bool leaves_first(const Cost& a, const Cost& b);
  void order_victims(std::vector<JobId>& victims) const;
  void mark_below(QueueId queue, std::vector<bool>& below) const;
  template <class Part>
  void leave_out(Change& change, std::vector<Part> Change::*parts);

  state::State& state_;
  const state::JobState& job_;
  Timestamp now_;
  const Effort& effort_;
  std::uint64_t tries_ = 0;
  PlaceWork work_;
  std::vector<Change> told_;
};

// Again and again, until none of the parts can be spared: what one part makes possible may spare another.
template <class Part>
void Inquiry::leave_out(Change& change, std::vector<Part> Change::*parts) {
  bool again = true;
  while (again && !spent()) {
    again = false;
    for (std::size_t i = (change.*parts).size(); i-- > 0;) {
      Change fewer = change;
      (fewer.*parts).erase((fewer.*parts).begin() + static_cast<std::ptrdiff_t>(i));
      if (!starts(fewer)) continue;
      change = std::move(fewer);
      again = true;
    }
  }
}

}  // namespace berth::sched
