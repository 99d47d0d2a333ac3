#pragma once
// CycleCache: which active equivalence classes can still get anything in this cycle.
//
// Decisions of a cycle only take resources. So places that were refused to one job stay refused, until the cycle ends,
// to all jobs with the same requests, and a max that is reached stays reached. Such places are not searched again. When
// no class is open any more, the other jobs need not be evaluated. A class is open if it may still start or evict.
//
// For places this holds only for jobs of one task group without affinity. With several groups, or jobs to be near, what
// another job takes may even help.

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
  // Adds a class that stays active. Classes come in the order of their keys. `claims`: it may evict. `signalled`: its
  // wait group if the class was only signalled, else null.
  void add(const EvaluatedClass& eq_class, Verdicts::Case& what, bool claims, const WaitGroup* signalled);
  const std::vector<EvaluatedClass>& asked() const { return asked_; }

  // Something was bound or nominated.
  void take() { ++taken_; }
  // Returns true if no active class can start or evict any more.
  bool none(const state::State& state);
  // Returns the only leaf that still has open classes; nothing if there are several. Other jobs would all be refused,
  // so their order does not matter.
  std::optional<QueueId> only_leaf(const state::State& state);
  // Why an equal request was refused its places in this cycle; nothing if none was.
  const std::optional<Reason>& refused(Verdicts::Id question) { return refusal(question); }
  void refuse(Verdicts::Id question, const Reason& why);
  // The probe, which asks of the state as the cycle finds it, was refused these places.
  void note_refused_at_first(Verdicts::Id question, const Reason& why);
  // Returns why, if that still holds: nothing was taken since, or what is taken helps no such job (`alike`).
  const Reason* refused_at_first(Verdicts::Id question, bool alike) const;
  bool refuses_any() const { return refuses_any_; }
  // Returns why the places of the class were refused, if they were and the class may not evict.
  std::optional<Reason> refused(const state::EquivalenceKey& eq_class) const;
  // Returns why a job of the class (an index into `asked()`) would be refused; null if that is not certain. Null also
  // if the class may evict.
  const Reason* closed(const state::State& state, std::size_t eq_class);
  // No other job of the class is evaluated in this cycle.
  void shut(std::size_t eq_class) { eq_classes_[eq_class].shut = true; }
  // No victims were found for a job of the class. Other jobs of it that are evaluated later, because they may pass a
  // reservation that it may not, do not search for victims again.
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

  std::vector<std::optional<Reason>> refusals_;          // refused places, by verdict id
  std::vector<std::optional<Reason>> refused_at_first_;  // likewise, by the probe
  bool refuses_any_ = false;
  std::vector<EvaluatedClass> asked_;
  std::vector<EquivalenceClass> eq_classes_;  // parallel to asked_
  std::size_t first_open_ = 0;                // all classes before it are closed, and stay so
  std::size_t after_open_ = 0;                // all classes from here on are closed
  std::size_t taken_ = 0;                     // number of binds and nominations so far
};

}  // namespace berth::sched
