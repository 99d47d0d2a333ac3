#include "state/presence_index.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"

namespace berth::state {

namespace {

template <class Listed, class Label, class Entry>
void add_to(Listed& lists, const Label& label, const Entry* entry) {
  auto& list = lists[label];
  if (std::find(list.begin(), list.end(), entry) == list.end()) list.push_back(entry);
}

template <class Listed, class Label, class Entry>
void take_from(Listed& lists, const Label& label, const Entry* entry) {
  const auto list = lists.find(label);
  if (list == lists.end()) return;
  std::erase(list->second, entry);
  if (list->second.empty()) lists.erase(list);
}

}  // namespace

bool matches(const AffinityTerm& term, const Labels& labels) {
  return std::includes(labels.begin(), labels.end(), term.labels.begin(), term.labels.end());
}

bool share_a_port(const std::vector<std::int32_t>& some, const std::vector<std::int32_t>& others) {
  return std::find_first_of(some.begin(), some.end(), others.begin(), others.end()) != some.end();
}

void PresenceIndex::count(QueueId queue, const JobSpec& spec, NodeId node, const PresentTasks& more) {
  Presence presence{queue, spec.labels, {}, spec.ports};
  std::copy_if(spec.anti_affinity.begin(), spec.anti_affinity.end(), std::back_inserter(presence.excludes),
               [](const AffinityTerm& term) { return term.required; });
  if (presence.labels.empty() && presence.excludes.empty() && presence.ports.empty()) return;
  const auto [entry, fresh] = presences_.try_emplace(std::move(presence));
  if (fresh) list(*entry);
  PresentTasks& here = entry->second[node];
  here.bound += more.bound;
  here.nominated += more.nominated;
  BERTH_CHECK(here.bound >= 0);
  BERTH_CHECK(here.nominated >= 0);
  if (here != PresentTasks()) return;
  entry->second.erase(node);
  if (!entry->second.empty()) return;
  strike(*entry);
  presences_.erase(entry);
}

void PresenceIndex::forget(NodeId node) {
  for (auto entry = presences_.begin(); entry != presences_.end();) {
    entry->second.erase(node);
    if (entry->second.empty()) {
      strike(*entry);
      entry = presences_.erase(entry);
    } else {
      ++entry;
    }
  }
}

void PresenceIndex::list(const Entry& entry) {
  for (const Label& label : entry.first.labels) add_to(by_label_, label, &entry);
  for (const AffinityTerm& term : entry.first.excludes) add_to(by_excluded_, term.labels.front(), &entry);
  for (const std::int32_t port : entry.first.ports) add_to(by_port_, port, &entry);
}

void PresenceIndex::strike(const Entry& entry) {
  for (const Label& label : entry.first.labels) take_from(by_label_, label, &entry);
  for (const AffinityTerm& term : entry.first.excludes) take_from(by_excluded_, term.labels.front(), &entry);
  for (const std::int32_t port : entry.first.ports) take_from(by_port_, port, &entry);
}

std::vector<const PresenceIndex::Entry*> PresenceIndex::meant_by(const AffinityTerm& term) const {
  std::vector<const Entry*> found;
  const auto list = by_label_.find(term.labels.front());
  if (list == by_label_.end()) return found;
  std::copy_if(list->second.begin(), list->second.end(), std::back_inserter(found),
               [&](const Entry* entry) { return matches(term, entry->first.labels); });
  return found;
}

std::vector<const PresenceIndex::Entry*> PresenceIndex::excluding(const Labels& labels) const {
  std::vector<const Entry*> found;
  for (const Label& label : labels) {
    const auto list = by_excluded_.find(label);
    if (list == by_excluded_.end()) continue;
    for (const Entry* entry : list->second) {
      const auto& terms = entry->first.excludes;
      const bool excludes = std::any_of(terms.begin(), terms.end(), [&](const AffinityTerm& term) {
        return term.labels.front() == label && matches(term, labels);
      });
      if (excludes) found.push_back(entry);
    }
  }
  return found;
}

std::vector<const PresenceIndex::Entry*> PresenceIndex::having(const std::vector<std::int32_t>& ports) const {
  std::vector<const Entry*> found;
  for (const std::int32_t port : ports) {
    const auto list = by_port_.find(port);
    if (list == by_port_.end()) continue;
    for (const Entry* entry : list->second) {
      if (std::find(found.begin(), found.end(), entry) == found.end()) found.push_back(entry);
    }
  }
  return found;
}

}  // namespace berth::state
