#include "state/wait_lists.h"

#include <utility>

namespace berth::state {

const std::map<LaneKey, WaitLists::Sleeper*>& WaitLists::waiting_for(QueueId queue) const {
  static const std::map<LaneKey, Sleeper*> kNobody;
  const auto found = for_queue_.find(queue);
  return found == for_queue_.end() ? kNobody : found->second;
}

void WaitLists::strike_out(const LaneKey& lane) {
  const auto found = asleep_.find(lane);
  if (found == asleep_.end()) return;
  const Sleep& sleep = found->second.sleep;
  for (const QuotaNeed& need : sleep.quota) {
    const auto waiting = for_queue_.find(need.queue);
    if (waiting == for_queue_.end()) continue;  // several needs of one queue are one entry
    waiting->second.erase(lane);
    if (waiting->second.empty()) for_queue_.erase(waiting);
  }
  if (sleep.places) {
    const auto shape = for_places_.find(lane.shape);
    shape->second.erase(lane);
    if (shape->second.empty()) for_places_.erase(shape);
  }
  if (sleep.any_easing) for_any_easing_.erase(lane);
  if (sleep.any_change) for_any_change_.erase(lane);
  if (!sleep.until.is_never()) for_time_.erase({sleep.until, lane});
  behind_holds_.erase(lane);
  asleep_.erase(found);
}

void WaitLists::wake(const LaneKey& lane) {
  strike_out(lane);
  awake_[lane] = nullptr;
}

WaitLists::Sleeper* WaitLists::find_sleeper(const LaneKey& lane) {
  const auto found = asleep_.find(lane);
  return found == asleep_.end() ? nullptr : &found->second;
}

void WaitLists::stir(const LaneKey& lane, Sleeper* sleeper) {
  sleeper->stirred = true;
  awake_[lane] = sleeper;
}

void WaitLists::wake_all() {
  for (const auto& [lane, sleeper] : asleep_) awake_.try_emplace(lane);
  for (auto& [lane, sleeper] : awake_) sleeper = nullptr;
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
  awake_.erase(lane);
  if (already != asleep_.end()) {
    already->second.stirred = false;
    already->second.by_node.clear();
    if (already->second.sleep == sleep) return;
    strike_out(lane);
  }
  Sleeper& sleeper = asleep_[lane];
  for (const QuotaNeed& need : sleep.quota) for_queue_[need.queue][lane] = &sleeper;
  if (sleep.places) for_places_[lane.shape][lane] = &sleeper;
  if (sleep.any_easing) for_any_easing_.insert(lane);
  if (sleep.any_change) for_any_change_.insert(lane);
  if (!sleep.until.is_never()) for_time_.emplace(sleep.until, lane);
  if (sleep.holds) behind_holds_.insert(lane);
  sleeper.sleep = std::move(sleep);
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
