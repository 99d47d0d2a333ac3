#pragma once
// Openings: what may still come of the lanes that are awake in one cycle.
//
// What is bound or promised in a cycle only takes: places that were refused to one job stay refused, until the cycle
// ends, to all that ask the same, and a ceiling that is reached stays reached. So nobody searches for such places
// again, and when nothing is open any more, and nobody left could claim victims, the rest need not be asked at all.
// For places that holds for jobs of one task group; where several have to fit beside each other, what somebody else
// takes may even help.

#include <cstddef>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "model/reason.h"
#include "sched/place.h"
#include "state/state.h"

namespace berth::sched {

class Openings {
 public:
  // A lane stays awake; `job` is its first, and the models are those that quota leaves it. Lanes come in their order.
  void add(const state::State& state, const state::LaneKey& lane, const state::JobState& job, ModelMask models);
  // A lane stays awake that is refused but may claim.
  void add_claimant(const state::LaneKey& lane) { lanes_.push_back({lane, nullptr, {}, true, false}); }

  // Nobody that is awake could start or claim any more.
  bool none(const state::State& state);
  // Why the job finds no places, if somebody was refused the same.
  std::optional<Reason> refused(const PlaceQuestion& question) const;
  // The reason by which the lane's places were refused, if they were.
  std::optional<Reason> refused(const state::LaneKey& lane) const;
  void refuse(const PlaceQuestion& question, const Reason& why);
  // Nobody else of the lane is asked in this cycle.
  void shut(const state::LaneKey& lane);

 private:
  struct Answer {
    std::optional<Reason> refused;
  };
  struct Lane {
    state::LaneKey key;
    const Answer* places = nullptr;  // to what it asks, if that is the same for others
    Amounts asked;                   // by one job, at least
    bool claims = false;
    bool shut = false;
  };
  static bool is_open(const state::State& state, const Lane& lane);
  std::vector<Lane>::const_iterator find(const state::LaneKey& lane) const;

  std::map<PlaceQuestion, Answer> answers_;
  std::vector<Lane> lanes_;
  std::size_t first_open_ = 0;  // what was closed before it stays so
};

}  // namespace berth::sched
