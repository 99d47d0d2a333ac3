#include "sched/requeue/cycle_cache.h"

#include <algorithm>

#include "sched/queue/quota.h"
#include "sched/requeue/requeue.h"

namespace berth::sched {

using state::EquivalenceKey;
using state::State;

void CycleCache::add(const EvaluatedClass& eq_class, Verdicts::Case& what, bool claims, const WaitGroup* signalled) {
  asked_.push_back(eq_class);
  eq_classes_.push_back({&what, signalled, claims, false, false});
  after_open_ = eq_classes_.size();
  if (what.question) refusal(*what.question);
}

std::optional<Reason>& CycleCache::refusal(Verdicts::Id question) {
  if (question >= refusals_.size()) refusals_.resize(question + 1);
  return refusals_[question];
}

void CycleCache::refuse(Verdicts::Id question, const Reason& why) {
  refusal(question) = why;
  refuses_any_ = true;
}

void CycleCache::note_refused_at_first(Verdicts::Id question, const Reason& why) {
  if (question >= refused_at_first_.size()) refused_at_first_.resize(question + 1);
  refused_at_first_[question] = why;
}

const Reason* CycleCache::refused_at_first(Verdicts::Id question, bool alike) const {
  const bool known = question < refused_at_first_.size() && refused_at_first_[question];
  return known && (alike || taken_ == 0) ? &*refused_at_first_[question] : nullptr;
}

const std::optional<Reason>& CycleCache::over_max_by_now(const State& state, Verdicts::Case& what) const {
  if (!what.over_max && what.over_max_as_of != taken_) what.over_max = over_max(state, what.rules_from, what.least);
  what.over_max_as_of = taken_;
  return what.over_max;
}

const Reason* CycleCache::closed(const State& state, std::size_t index) {
  const EquivalenceClass& eq_class = eq_classes_[index];
  if (eq_class.claims || may_evict_later(state, asked_[index].key.queue)) return nullptr;
  if (const auto& why = over_max_by_now(state, *eq_class.what)) return &*why;
  if (!eq_class.what->alike || !eq_class.what->question) return nullptr;
  const auto& why = refusals_[*eq_class.what->question];
  return why ? &*why : nullptr;
}

// A class that may evict is open, whatever refuses it.
bool CycleCache::is_open(const State& state, std::size_t index) {
  const EquivalenceClass& eq_class = eq_classes_[index];
  if (eq_class.shut) return false;
  if (eq_class.claims) return true;
  if (eq_class.what->alike && eq_class.what->question && refusals_[*eq_class.what->question]) return false;
  const bool taken = over_max_by_now(state, *eq_class.what).has_value() ||
                     (eq_class.signalled != nullptr && nodes_are_taken(state, *eq_class.signalled));
  return !taken || may_evict_by_now(state, asked_[index].key);
}

bool CycleCache::none(const State& state) {
  while (first_open_ < eq_classes_.size() && !is_open(state, first_open_)) ++first_open_;
  return first_open_ == eq_classes_.size();
}

std::optional<QueueId> CycleCache::only_leaf(const State& state) {
  if (none(state)) return std::nullopt;
  while (!is_open(state, after_open_ - 1)) --after_open_;
  const QueueId leaf = asked_[first_open_].key.queue;
  return asked_[after_open_ - 1].key.queue == leaf ? std::optional(leaf) : std::nullopt;
}

std::optional<Reason> CycleCache::refused(const EquivalenceKey& key) const {
  const auto found = std::lower_bound(
      asked_.begin(), asked_.end(), key,
      [](const EvaluatedClass& eq_class, const EquivalenceKey& wanted) { return eq_class.key < wanted; });
  if (found == asked_.end() || found->key != key) return std::nullopt;
  const EquivalenceClass& eq_class = eq_classes_[static_cast<std::size_t>(found - asked_.begin())];
  if (eq_class.claims || !eq_class.what->alike || !eq_class.what->question) return std::nullopt;
  return refusals_[*eq_class.what->question];
}

}  // namespace berth::sched
