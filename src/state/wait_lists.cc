#include "state/wait_lists.h"

#include <utility>

namespace berth::state {

std::vector<LaneKey> WaitLists::waiting_for(QueueId queue) const {
  const auto found = for_queue_.find(queue);
  if (found == for_queue_.end()) return {};
  return {found->second.begin(), found->second.end()};
}

void WaitLists::strike_out(const LaneKey& lane) {
  const auto found = asleep_.find(lane);
  if (found == asleep_.end()) return;
  for (const QuotaNeed& need : found->second.quota) {
    const auto waiting = for_queue_.find(need.queue);
    if (waiting == for_queue_.end()) continue;  // several needs of one queue are one entry
    waiting->second.erase(lane);
    if (waiting->second.empty()) for_queue_.erase(waiting);
  }
  if (found->second.places) {
    const auto shape = for_places_.find(lane.shape);
    shape->second.erase(lane);
    if (shape->second.empty()) for_places_.erase(shape);
  }
  if (found->second.any_easing) for_any_easing_.erase(lane);
  if (found->second.any_change) for_any_change_.erase(lane);
  if (!found->second.until.is_never()) for_time_.erase({found->second.until, lane});
  behind_holds_.erase(lane);
  asleep_.erase(found);
}

void WaitLists::wake(const LaneKey& lane) {
  strike_out(lane);
  awake_.insert(lane);
}

void WaitLists::wake_all() {
  for (const auto& [lane, sleep] : asleep_) awake_.insert(lane);
  asleep_.clear();
  for_queue_.clear();
  for_places_.clear();
  for_any_easing_.clear();
  for_any_change_.clear();
  for_time_.clear();
  behind_holds_.clear();
}

void WaitLists::put_to_sleep(const LaneKey& lane, Sleep sleep) {
  const auto already = asleep_.find(lane);
  if (already != asleep_.end()) {
    if (already->second == sleep) return;
    strike_out(lane);
  }
  awake_.erase(lane);
  for (const QuotaNeed& need : sleep.quota) for_queue_[need.queue].insert(lane);
  if (sleep.places) for_places_[lane.shape].insert(lane);
  if (sleep.any_easing) for_any_easing_.insert(lane);
  if (sleep.any_change) for_any_change_.insert(lane);
  if (!sleep.until.is_never()) for_time_.emplace(sleep.until, lane);
  if (sleep.holds) behind_holds_.insert(lane);
  asleep_[lane] = std::move(sleep);
}

void WaitLists::forget(const LaneKey& lane) {
  strike_out(lane);
  awake_.erase(lane);
}

void WaitLists::clear_marks() {
  changed_ = false;
  eased_ = {};
}

}  // namespace berth::state
