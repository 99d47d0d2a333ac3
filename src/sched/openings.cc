#include "sched/openings.h"

#include <algorithm>

#include "sched/preempt.h"
#include "sched/quota.h"

namespace berth::sched {

using state::JobState;
using state::LaneKey;
using state::State;

void Openings::add(const State& state, const LaneKey& key, const JobState& job, ModelMask models) {
  Lane lane{key, nullptr, least_amounts(state, job.spec), false, false};
  lane.claims = may_claim(state, job, lane.asked);
  if (job.spec.groups.size() == 1) lane.places = &answers_[place_question(state, job, models)];
  lanes_.push_back(lane);
}

// Whoever may claim is asked, whatever is refused to him.
bool Openings::is_open(const State& state, const Lane& lane) {
  if (lane.shut) return false;
  if (lane.claims) return true;
  return !(lane.places != nullptr && lane.places->refused) && !over_max(state, lane.key.queue, lane.asked);
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

std::optional<Reason> Openings::refused(const PlaceQuestion& question) const {
  const auto found = answers_.find(question);
  return found == answers_.end() ? std::nullopt : found->second.refused;
}

std::optional<Reason> Openings::refused(const LaneKey& key) const {
  const auto lane = find(key);
  if (lane == lanes_.end() || lane->claims || lane->places == nullptr) return std::nullopt;
  return lane->places->refused;
}

void Openings::refuse(const PlaceQuestion& question, const Reason& why) { answers_[question].refused = why; }

void Openings::shut(const LaneKey& key) {
  const auto lane = find(key);
  if (lane != lanes_.end()) lanes_[static_cast<std::size_t>(lane - lanes_.begin())].shut = true;
}

}  // namespace berth::sched
