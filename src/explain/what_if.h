#pragma once
// Searches the remedies for one pending job (explain/find_remedy.h). Each change is tried on the undo log of the state
// before it is told. find_remedy.cc changes the request of the job; remedy_evictions.cc changes limits, victims and
// nodes.

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "explain/find_remedy.h"
#include "explain/remedy.h"
#include "sched/place/place.h"
#include "state/state.h"

namespace berth::explain {

constexpr std::size_t kMostVictims = 64;  // a longer list is of no use, and each victim costs tries
constexpr std::size_t kMostNodes = 64;

class WhatIf {
 public:
  WhatIf(state::State& state, JobId id, Timestamp now, const Effort& effort)
      : state_(state), job_(*state.job(id)), now_(now), effort_(effort) {}

  std::vector<Remedy> run();
  bool starts(const Remedy& change, Reason* why = nullptr);

 private:
  bool spent() const { return tries_ >= effort_.tries || work_.nodes_scored >= effort_.nodes_scored; }
  void tell(std::optional<Remedy> change);
  JobId taken_by(const Remedy& change);
  void try_names(RemedyKind kind, std::size_t group, const std::set<std::string>& names);

  std::optional<Remedy> priority(JobId head);
  std::optional<Remedy> time_limit();
  std::optional<Remedy> wait();
  void start_held(state::Transaction& transaction, Timestamp when) const;
  Timestamp held_end(JobId owner, const state::BackfillReservation& hold) const;
  std::optional<Remedy> uncordon();
  void other_nodes(std::size_t group);
  void smaller_asks(std::size_t group);
  void smaller_profile(std::size_t group);
  void less_beside_growth(RemedyKind kind, std::size_t group, std::int64_t from, std::int64_t unit);
  void without_rule(std::size_t group);
  void wider_level();
  void wider_group_level(std::size_t group);
  void without_term();
  void other_ports();
  void other_numa(std::size_t group);
  void without_image(std::size_t group);
  bool less_may_be_harder(const Remedy& change) const;
  std::optional<Remedy> largest(Remedy change, std::int64_t low, std::int64_t unit);
  std::optional<Remedy> largest(RemedyKind kind, std::size_t group, std::int64_t from, std::int64_t low,
                                std::int64_t unit);
  Remedy raise_limits();
  bool add_raise(Remedy& change, const Reason& why) const;
  void tighten(Remedy& change);
  std::optional<Remedy> evict(std::vector<Raise> raises);
  bool add_victims_below(Remedy& change, const Reason& why) const;
  bool add_affinity_victims(Remedy& change, NodeId node) const;
  bool add_affinity_victims_somewhere(Remedy& change, std::size_t group);
  bool add_victims_on_nodes(Remedy& change, const std::vector<NodeId>& nodes, std::size_t& next,
                            std::size_t many) const;
  std::vector<NodeId> nearly_fitting_nodes(const Reason& why, std::size_t group) const;
  bool may_leave(JobId id, const Remedy& change) const;
  std::optional<Shrink> all_growth_of(JobId id) const;
  void keep_most(Remedy& change);
  void spare(Remedy& change);
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
  void leave_out(Remedy& change, std::vector<Part> Remedy::*parts);

  state::State& state_;
  const state::JobState& job_;
  Timestamp now_;
  const Effort& effort_;
  std::uint64_t tries_ = 0;
  sched::SearchStats work_;
  std::vector<Remedy> told_;
};

// Removes parts from the change as long as the job still starts, until no part can be removed. One pass is not enough:
// a removal can make another part unnecessary.
template <class Part>
void WhatIf::leave_out(Remedy& change, std::vector<Part> Remedy::*parts) {
  bool again = true;
  while (again && !spent()) {
    again = false;
    for (std::size_t i = (change.*parts).size(); i-- > 0;) {
      Remedy fewer = change;
      (fewer.*parts).erase((fewer.*parts).begin() + static_cast<std::ptrdiff_t>(i));
      if (!starts(fewer)) continue;
      change = std::move(fewer);
      again = true;
    }
  }
}

}  // namespace berth::explain
