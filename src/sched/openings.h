#pragma once
// Openings: what may still come of the lanes that are awake in one cycle.
//
// What is bound or promised in a cycle only takes: places that were refused to one job stay refused, until the cycle
// ends, to all that ask the same, and a ceiling that is reached stays reached. So nobody searches for such places
// again, and when nothing is open any more, and nobody left could claim victims, the rest need not be asked at all.
// For places that holds for jobs of one task group; where several have to fit beside each other, or near somebody, what
// somebody else takes may even help.

#include <cstddef>
#include <optional>
#include <vector>

#include "model/reason.h"
#include "sched/questions.h"
#include "state/state.h"

namespace berth::sched {

class Openings {
 public:
  using Sleeper = state::WaitLists::Sleeper;
  // A lane stays awake; `job` is its first, which counts `asked` at least, and `stirred` is not null if the lane was
  // only stirred. Lanes come in their order.
  void add(const state::State& state, const state::LaneKey& lane, const state::JobState& job, const Amounts& asked,
           Questions::Id question, const Sleeper* stirred);
  // A lane stays awake that is refused but may claim.
  void add_claimant(const state::LaneKey& lane) { lanes_.push_back({lane, {}, nullptr, nullptr, true, false}); }

  // Nobody that is awake could start or claim any more.
  bool none(const state::State& state);
  // Why no places are found, if somebody was refused the same.
  const std::optional<Reason>& refused(Questions::Id question);
  // The reason by which the lane's places were refused, if they were.
  std::optional<Reason> refused(const state::LaneKey& lane) const;
  void refuse(Questions::Id question, const Reason& why) { refusal(question) = why; }
  // Nobody else of the lane is asked in this cycle.
  void shut(const state::LaneKey& lane);

 private:
  struct Lane {
    state::LaneKey key;
    std::optional<Questions::Id> question;  // what it asks, if others are refused what it is
    const Amounts* asked = nullptr;         // by one job, at least; of nobody who claims
    const Sleeper* stirred = nullptr;
    bool claims = false;
    bool shut = false;
  };
  bool is_open(const state::State& state, const Lane& lane) const;
  std::optional<Reason>& refusal(Questions::Id question);
  std::vector<Lane>::const_iterator find(const state::LaneKey& lane) const;

  std::vector<std::optional<Reason>> refusals_;  // by question
  std::vector<Lane> lanes_;
  std::size_t first_open_ = 0;  // what was closed before it stays so
};

}  // namespace berth::sched
