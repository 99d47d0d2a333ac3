#pragma once
// CycleCache: what may still come of the lanes that are awake in one cycle.
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
#include "sched/queue/order.h"
#include "sched/requeue/verdicts.h"
#include "state/state.h"

namespace berth::sched {

class CycleCache {
 public:
  using WaitGroup = state::WaitIndex::WaitGroup;
  // A lane stays awake. Lanes come in their order. `stirred` is not null if the lane was only stirred.
  void add(const EvaluatedClass& eq_class, Verdicts::Case& what, bool claims, const WaitGroup* signalled);
  const std::vector<EvaluatedClass>& asked() const { return asked_; }

  // Something was bound or promised.
  void take() { ++taken_; }
  // Nobody that is awake could start or claim any more.
  bool none(const state::State& state);
  // The leaf in which all lie that still could. The others would all be refused, so nothing depends on when they are.
  std::optional<QueueId> only_leaf(const state::State& state);
  // Why no places are found, if somebody was refused the same.
  const std::optional<Reason>& refused(Verdicts::Id question) { return refusal(question); }
  void refuse(Verdicts::Id question, const Reason& why);
  bool refuses_any() const { return refuses_any_; }
  // The reason by which the lane's places were refused, if they were and nobody of it may claim.
  std::optional<Reason> refused(const state::EquivalenceKey& eq_class) const;
  // Why a job of the lane, by its place in `asked()`, would be refused whatever else it asks; nothing if that is not
  // certain.
  const Reason* closed(const state::State& state, std::size_t eq_class);
  // Nobody else of the lane is asked in this cycle.
  void shut(std::size_t eq_class) { eq_classes_[eq_class].shut = true; }
  // No victims were found for one of the lane: those that are asked after it, because they may pass a hold that it may
  // not, need not look for any.
  void note_futile_eviction(std::size_t eq_class) { eq_classes_[eq_class].futile = true; }
  bool eviction_is_futile(std::size_t eq_class) const { return eq_classes_[eq_class].futile; }

 private:
  struct EquivalenceClass {
    Verdicts::Case* what = nullptr;
    const WaitGroup* signalled = nullptr;
    bool claims = false;
    bool shut = false;
    bool futile = false;
  };
  bool is_open(const state::State& state, std::size_t eq_class);
  const std::optional<Reason>& over_max_by_now(const state::State& state, Verdicts::Case& what) const;
  std::optional<Reason>& refusal(Verdicts::Id question);

  std::vector<std::optional<Reason>> refusals_;  // by question
  bool refuses_any_ = false;
  std::vector<EvaluatedClass> asked_;
  std::vector<EquivalenceClass> eq_classes_;  // the same
  std::size_t first_open_ = 0;                // what was closed before it stays so
  std::size_t after_open_ = 0;                // and from there on
  std::size_t taken_ = 0;                     // so often
};

}  // namespace berth::sched
