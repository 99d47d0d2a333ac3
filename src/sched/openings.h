#pragma once
// Openings: what may still come of the lanes that are awake in one cycle, by the places that they ask for.
//
// What is bound or promised in a cycle only takes: places that were refused to one job stay refused, until the cycle
// ends, to all that ask the same. So nobody searches for them again, and when nothing is open any more, and nobody left
// could claim victims, the rest need not be asked at all. That holds for jobs of one task group; where several have to
// fit beside each other, what somebody else takes may even help.

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
  // A lane stays awake; `job` is its first, and the models are those that quota leaves it.
  void add(const state::State& state, const state::LaneKey& lane, const state::JobState& job, ModelMask models);
  // A lane of which nothing more is known stays awake.
  void add_other() { ++others_; }

  // Nobody that is awake could start or claim any more.
  bool none() const { return others_ == 0 && open_ == 0; }
  // Why the job finds no places, if somebody was refused the same.
  std::optional<Reason> refused(const PlaceQuestion& question) const;
  // The reason by which the lane's places were refused, if they were.
  std::optional<Reason> refused(const state::LaneKey& lane) const;
  void refuse(const PlaceQuestion& question, const Reason& why);

 private:
  struct Answer {
    std::size_t lanes = 0;
    std::optional<Reason> refused;
  };
  std::map<PlaceQuestion, Answer> answers_;
  std::map<state::LaneKey, const Answer*> lanes_;
  std::size_t others_ = 0;
  std::size_t open_ = 0;  // answers with lanes that are not refused
};

}  // namespace berth::sched
