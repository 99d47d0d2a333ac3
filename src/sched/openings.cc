#include "sched/openings.h"

#include <algorithm>

#include "sched/quota.h"
#include "sched/waking.h"

namespace berth::sched {

using state::LaneKey;
using state::State;

void Openings::add(const AskedLane& lane, Questions::Case& what, bool claims, const Cohort* stirred) {
  asked_.push_back(lane);
  lanes_.push_back({&what, stirred, claims, false, false});
  after_open_ = lanes_.size();
  if (what.question) refusal(*what.question);
}

std::optional<Reason>& Openings::refusal(Questions::Id question) {
  if (question >= refusals_.size()) refusals_.resize(question + 1);
  return refusals_[question];
}

void Openings::refuse(Questions::Id question, const Reason& why) {
  refusal(question) = why;
  refuses_any_ = true;
}

const std::optional<Reason>& Openings::over_max_by_now(const State& state, Questions::Case& what) const {
  if (!what.over_max && what.over_max_as_of != taken_) what.over_max = over_max(state, what.rules_from, what.least);
  what.over_max_as_of = taken_;
  return what.over_max;
}

const Reason* Openings::closed(const State& state, std::size_t index) {
  const Lane& lane = lanes_[index];
  if (lane.claims || may_claim_later(state, asked_[index].key.queue)) return nullptr;
  if (const auto& why = over_max_by_now(state, *lane.what)) return &*why;
  if (!lane.what->alike || !lane.what->question) return nullptr;
  const auto& why = refusals_[*lane.what->question];
  return why ? &*why : nullptr;
}

// Whoever may claim is asked, whatever is refused to him.
bool Openings::is_open(const State& state, std::size_t index) {
  const Lane& lane = lanes_[index];
  if (lane.shut) return false;
  if (lane.claims) return true;
  if (lane.what->alike && lane.what->question && refusals_[*lane.what->question]) return false;
  const bool taken = over_max_by_now(state, *lane.what).has_value() ||
                     (lane.stirred != nullptr && nodes_are_taken(state, *lane.stirred));
  return !taken || may_claim_by_now(state, asked_[index].key);
}

bool Openings::none(const State& state) {
  while (first_open_ < lanes_.size() && !is_open(state, first_open_)) ++first_open_;
  return first_open_ == lanes_.size();
}

std::optional<QueueId> Openings::only_leaf(const State& state) {
  if (none(state)) return std::nullopt;
  while (!is_open(state, after_open_ - 1)) --after_open_;
  const QueueId leaf = asked_[first_open_].key.queue;
  return asked_[after_open_ - 1].key.queue == leaf ? std::optional(leaf) : std::nullopt;
}

std::optional<Reason> Openings::refused(const LaneKey& key) const {
  const auto found = std::lower_bound(asked_.begin(), asked_.end(), key,
                                      [](const AskedLane& lane, const LaneKey& wanted) { return lane.key < wanted; });
  if (found == asked_.end() || found->key != key) return std::nullopt;
  const Lane& lane = lanes_[static_cast<std::size_t>(found - asked_.begin())];
  if (lane.claims || !lane.what->alike || !lane.what->question) return std::nullopt;
  return refusals_[*lane.what->question];
}

}  // namespace berth::sched
