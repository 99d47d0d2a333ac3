#include "sched/openings.h"

#include <algorithm>

#include "sched/preempt.h"
#include "sched/quota.h"
#include "sched/waking.h"

namespace berth::sched {

using state::JobState;
using state::LaneKey;
using state::State;

void Openings::add(const State& state, const LaneKey& key, const JobState& job, const Amounts& asked,
                   Questions::Id question, const Sleeper* stirred) {
  Lane lane{key, {}, &asked, stirred, may_claim(state, job, asked), false};
  if (job.spec.groups.size() == 1 && job.spec.affinity.empty()) {
    lane.question = question;
    refusal(question);
  }
  lanes_.push_back(lane);
}

std::optional<Reason>& Openings::refusal(Questions::Id question) {
  if (question >= refusals_.size()) refusals_.resize(question + 1);
  return refusals_[question];
}

// Whoever may claim is asked, whatever is refused to him.
bool Openings::is_open(const State& state, const Lane& lane) const {
  if (lane.shut) return false;
  if (lane.claims) return true;
  if (lane.question && refusals_[*lane.question]) return false;
  const bool closed = over_max(state, lane.key.queue, *lane.asked) ||
                      (lane.stirred != nullptr && nodes_are_taken(state, lane.key, *lane.stirred));
  return !closed || may_claim_by_now(state, lane.key);
}

bool Openings::none(const State& state) {
  while (first_open_ < lanes_.size() && !is_open(state, lanes_[first_open_])) ++first_open_;
  return first_open_ == lanes_.size();
}

std::vector<Openings::Lane>::const_iterator Openings::find(const LaneKey& key) const {
  const auto found = std::lower_bound(lanes_.begin(), lanes_.end(), key,
                                      [](const Lane& lane, const LaneKey& wanted) { return lane.key < wanted; });
  return found != lanes_.end() && found->key == key ? found : lanes_.end();
}

const std::optional<Reason>& Openings::refused(Questions::Id question) { return refusal(question); }

std::optional<Reason> Openings::refused(const LaneKey& key) const {
  const auto lane = find(key);
  if (lane == lanes_.end() || lane->claims || !lane->question) return std::nullopt;
  return refusals_[*lane->question];
}

void Openings::shut(const LaneKey& key) {
  const auto lane = find(key);
  if (lane != lanes_.end()) lanes_[static_cast<std::size_t>(lane - lanes_.begin())].shut = true;
}

}  // namespace berth::sched
