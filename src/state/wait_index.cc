#include "state/wait_index.h"

#include <utility>

namespace berth::state {

namespace {

std::vector<WaitIndex::WaitGroup*>& wait_groups_in(std::vector<WaitIndex::WaitGroup*>& list) { return list; }
std::vector<WaitIndex::WaitGroup*>& wait_groups_in(WaitIndex::ForPlaces& list) { return list.wait_groups; }

template <class List, class Key>
void strike(List& lists, const Key& key, const WaitIndex::WaitGroup* wait_group) {
  const auto list = lists.find(key);
  if (list == lists.end()) return;  // removed already: several needs of one queue are one entry
  auto& wait_groups = wait_groups_in(list->second);
  std::erase(wait_groups, wait_group);
  if (wait_groups.empty()) lists.erase(list);
}

}  // namespace

const std::vector<WaitIndex::WaitGroup*>& WaitIndex::waiting_for(QueueId queue) const {
  static const std::vector<WaitGroup*> kNobody;
  const auto found = for_queue_.find(queue);
  return found == for_queue_.end() ? kNobody : found->second;
}

bool WaitIndex::is_active(const EquivalenceKey& eq_class) const {
  const auto found = parked_.find(eq_class);
  return found == parked_.end() ? active_.contains(eq_class) : found->second.signalled();
}

bool WaitIndex::is_parked(const EquivalenceKey& eq_class) const {
  const auto found = parked_.find(eq_class);
  return found != parked_.end() && !found->second.signalled();
}

WaitIndex::WaitGroup& WaitIndex::wait_group_of(std::uint64_t shape, std::uint32_t quota_path,
                                               const WaitCause& wait_cause) {
  auto& alike = wait_groups_[{shape, quota_path}];
  for (const auto& wait_group : alike) {
    if (wait_group->wait_cause == wait_cause) return *wait_group;
  }
  WaitGroup& wait_group =
      *alike.emplace_back(std::make_unique<WaitGroup>(WaitGroup{shape, quota_path, wait_cause, {}, 0, {}}));
  for (const QuotaNeed& need : wait_cause.quota) {
    auto& waiting = for_queue_[need.queue];
    if (waiting.empty() || waiting.back() != &wait_group) waiting.push_back(&wait_group);
  }
  if (wait_cause.places)
    for_places_.try_emplace(shape, ForPlaces{*wait_cause.places, {}}).first->second.wait_groups.push_back(&wait_group);
  return wait_group;
}

void WaitIndex::leave_wait_group(ParkedClass& parked_class) {
  resume(parked_class);
  WaitGroup& wait_group = *parked_class.wait_group;
  wait_group.parked_classes.back()->in_wait_group = parked_class.in_wait_group;
  wait_group.parked_classes[parked_class.in_wait_group] = wait_group.parked_classes.back();
  wait_group.parked_classes.pop_back();
  if (!wait_group.parked_classes.empty()) return;
  for (const QuotaNeed& need : wait_group.wait_cause.quota) strike(for_queue_, need.queue, &wait_group);
  if (wait_group.wait_cause.places) strike(for_places_, wait_group.shape, &wait_group);
  const auto alike = wait_groups_.find({wait_group.shape, wait_group.quota_path});
  std::erase_if(alike->second, [&](const auto& one) { return one.get() == &wait_group; });
  if (alike->second.empty()) wait_groups_.erase(alike);
}

void WaitIndex::strike_out(const EquivalenceKey& eq_class) {
  const auto found = parked_.find(eq_class);
  if (found == parked_.end()) return;
  const WaitCause& wait_cause = found->second.wait_group->wait_cause;
  if (wait_cause.on_any_release) for_any_release_.erase(eq_class);
  if (wait_cause.any_change) for_any_change_.erase(eq_class);
  if (!wait_cause.until.is_never()) for_time_.erase({wait_cause.until, eq_class});
  behind_reservations_.erase(eq_class);
  leave_wait_group(found->second);
  parked_.erase(found);
}

void WaitIndex::activate(const EquivalenceKey& eq_class) {
  strike_out(eq_class);
  active_.insert(eq_class);
}

WaitIndex::ParkedClass* WaitIndex::find_parked(const EquivalenceKey& eq_class) {
  const auto found = parked_.find(eq_class);
  return found == parked_.end() ? nullptr : &found->second;
}

void WaitIndex::signal_class(ParkedClass& parked_class) {
  if (parked_class.signalled()) return;
  parked_class.in_signalled = signalled_.size();
  signalled_.push_back(&parked_class);
  ++parked_class.wait_group->signalled;
}

void WaitIndex::resume(ParkedClass& parked_class) {
  if (!parked_class.signalled()) return;
  signalled_.back()->in_signalled = parked_class.in_signalled;
  signalled_[parked_class.in_signalled] = signalled_.back();
  signalled_.pop_back();
  parked_class.in_signalled = ParkedClass::kNot;
  if (--parked_class.wait_group->signalled == 0) parked_class.wait_group->by_node.clear();
}

void WaitIndex::activate_all() {
  for (const auto& [eq_class, parked_class] : parked_) active_.insert(eq_class);
  parked_.clear();
  signalled_.clear();
  wait_groups_.clear();
  for_queue_.clear();
  for_places_.clear();
  for_any_release_.clear();
  for_any_change_.clear();
  for_time_.clear();
  behind_reservations_.clear();
}

void WaitIndex::park(const EquivalenceKey& eq_class, std::uint32_t quota_path, const WaitCause& wait_cause) {
  active_.erase(eq_class);
  if (ParkedClass* already = find_parked(eq_class)) {
    if (already->wait_group->wait_cause == wait_cause) return resume(*already);
    strike_out(eq_class);
  }
  ParkedClass& parked_class = parked_[eq_class];
  parked_class.eq_class = eq_class;
  parked_class.wait_group = &wait_group_of(eq_class.shape, quota_path, wait_cause);
  parked_class.in_wait_group = parked_class.wait_group->parked_classes.size();
  parked_class.wait_group->parked_classes.push_back(&parked_class);
  if (wait_cause.on_any_release) for_any_release_.insert(eq_class);
  if (wait_cause.any_change) for_any_change_.insert(eq_class);
  if (!wait_cause.until.is_never()) for_time_.emplace(wait_cause.until, eq_class);
  if (wait_cause.holds) behind_reservations_.insert(eq_class);
}

void WaitIndex::forget(const EquivalenceKey& eq_class) {
  strike_out(eq_class);
  active_.erase(eq_class);
}

void WaitIndex::forget_head(const EquivalenceKey& eq_class) {
  if (ParkedClass* parked_class = find_parked(eq_class)) parked_class->head.reset();
}

void WaitIndex::clear_marks() {
  changed_ = false;
  freed_ = {};
}

}  // namespace berth::state
