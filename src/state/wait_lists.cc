#include "state/wait_lists.h"

#include <utility>

namespace berth::state {

namespace {

std::vector<WaitLists::Cohort*>& cohorts_in(std::vector<WaitLists::Cohort*>& list) { return list; }
std::vector<WaitLists::Cohort*>& cohorts_in(WaitLists::ForPlaces& list) { return list.cohorts; }

template <class List, class Key>
void strike(List& lists, const Key& key, const WaitLists::Cohort* cohort) {
  const auto list = lists.find(key);
  if (list == lists.end()) return;  // several needs of one queue are one entry
  auto& cohorts = cohorts_in(list->second);
  std::erase(cohorts, cohort);
  if (cohorts.empty()) lists.erase(list);
}

}  // namespace

const std::vector<WaitLists::Cohort*>& WaitLists::waiting_for(QueueId queue) const {
  static const std::vector<Cohort*> kNobody;
  const auto found = for_queue_.find(queue);
  return found == for_queue_.end() ? kNobody : found->second;
}

bool WaitLists::is_awake(const LaneKey& lane) const {
  const auto found = asleep_.find(lane);
  return found == asleep_.end() ? awake_.contains(lane) : found->second.stirred();
}

bool WaitLists::sleeps(const LaneKey& lane) const {
  const auto found = asleep_.find(lane);
  return found != asleep_.end() && !found->second.stirred();
}

WaitLists::Cohort& WaitLists::cohort_of(std::uint64_t shape, std::uint32_t standpoint, const Sleep& sleep) {
  auto& alike = cohorts_[{shape, standpoint}];
  for (const auto& cohort : alike) {
    if (cohort->sleep == sleep) return *cohort;
  }
  Cohort& cohort = *alike.emplace_back(std::make_unique<Cohort>(Cohort{shape, standpoint, sleep, {}, 0, {}}));
  for (const QuotaNeed& need : sleep.quota) {
    auto& waiting = for_queue_[need.queue];
    if (waiting.empty() || waiting.back() != &cohort) waiting.push_back(&cohort);
  }
  if (sleep.places)
    for_places_.try_emplace(shape, ForPlaces{*sleep.places, {}}).first->second.cohorts.push_back(&cohort);
  return cohort;
}

void WaitLists::leave_cohort(Sleeper& sleeper) {
  resume(sleeper);
  Cohort& cohort = *sleeper.cohort;
  cohort.sleepers.back()->in_cohort = sleeper.in_cohort;
  cohort.sleepers[sleeper.in_cohort] = cohort.sleepers.back();
  cohort.sleepers.pop_back();
  if (!cohort.sleepers.empty()) return;
  for (const QuotaNeed& need : cohort.sleep.quota) strike(for_queue_, need.queue, &cohort);
  if (cohort.sleep.places) strike(for_places_, cohort.shape, &cohort);
  const auto alike = cohorts_.find({cohort.shape, cohort.standpoint});
  std::erase_if(alike->second, [&](const auto& one) { return one.get() == &cohort; });
  if (alike->second.empty()) cohorts_.erase(alike);
}

void WaitLists::strike_out(const LaneKey& lane) {
  const auto found = asleep_.find(lane);
  if (found == asleep_.end()) return;
  const Sleep& sleep = found->second.cohort->sleep;
  if (sleep.any_easing) for_any_easing_.erase(lane);
  if (sleep.any_change) for_any_change_.erase(lane);
  if (!sleep.until.is_never()) for_time_.erase({sleep.until, lane});
  behind_holds_.erase(lane);
  leave_cohort(found->second);
  asleep_.erase(found);
}

void WaitLists::wake(const LaneKey& lane) {
  strike_out(lane);
  awake_.insert(lane);
}

WaitLists::Sleeper* WaitLists::find_sleeper(const LaneKey& lane) {
  const auto found = asleep_.find(lane);
  return found == asleep_.end() ? nullptr : &found->second;
}

void WaitLists::stir(Sleeper& sleeper) {
  if (sleeper.stirred()) return;
  sleeper.in_stirred = stirred_.size();
  stirred_.push_back(&sleeper);
  ++sleeper.cohort->stirred;
}

void WaitLists::resume(Sleeper& sleeper) {
  if (!sleeper.stirred()) return;
  stirred_.back()->in_stirred = sleeper.in_stirred;
  stirred_[sleeper.in_stirred] = stirred_.back();
  stirred_.pop_back();
  sleeper.in_stirred = Sleeper::kNot;
  if (--sleeper.cohort->stirred == 0) sleeper.cohort->by_node.clear();
}

void WaitLists::wake_all() {
  for (const auto& [lane, sleeper] : asleep_) awake_.insert(lane);
  asleep_.clear();
  stirred_.clear();
  cohorts_.clear();
  for_queue_.clear();
  for_places_.clear();
  for_any_easing_.clear();
  for_any_change_.clear();
  for_time_.clear();
  behind_holds_.clear();
}

void WaitLists::put_to_sleep(const LaneKey& lane, std::uint32_t standpoint, const Sleep& sleep) {
  awake_.erase(lane);
  if (Sleeper* already = find_sleeper(lane)) {
    if (already->cohort->sleep == sleep) return resume(*already);
    strike_out(lane);
  }
  Sleeper& sleeper = asleep_[lane];
  sleeper.lane = lane;
  sleeper.cohort = &cohort_of(lane.shape, standpoint, sleep);
  sleeper.in_cohort = sleeper.cohort->sleepers.size();
  sleeper.cohort->sleepers.push_back(&sleeper);
  if (sleep.any_easing) for_any_easing_.insert(lane);
  if (sleep.any_change) for_any_change_.insert(lane);
  if (!sleep.until.is_never()) for_time_.emplace(sleep.until, lane);
  if (sleep.holds) behind_holds_.insert(lane);
}

void WaitLists::forget(const LaneKey& lane) {
  strike_out(lane);
  awake_.erase(lane);
}

void WaitLists::forget_head(const LaneKey& lane) {
  if (Sleeper* sleeper = find_sleeper(lane)) sleeper->head.reset();
}

void WaitLists::clear_marks() {
  changed_ = false;
  eased_ = {};
}

}  // namespace berth::state
