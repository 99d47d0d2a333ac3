#include "sched/place/image_locality.h"

#include <algorithm>
#include <set>
#include <vector>

namespace berth::sched {

namespace {

using state::State;

const std::vector<NodeId>* holders_of(const State& state, const JobSpec& spec, const TaskPlacement& place) {
  const std::string& image = spec.groups[place.group].image;
  return image.empty() ? nullptr : state.images().holders(image);
}

bool finds_image(const State& state, const JobSpec& spec, const TaskPlacement& place) {
  const auto* holders = holders_of(state, spec, place);
  return holders != nullptr && std::binary_search(holders->begin(), holders->end(), place.node);
}

// Returns the number of nodes of the places, then their number of domains at each level, the outermost first.
std::vector<std::size_t> widths(const State& state, std::span<const TaskPlacement> places) {
  std::set<NodeId> nodes;
  for (const TaskPlacement& place : places) nodes.insert(place.node);
  std::vector<std::size_t> widths{nodes.size()};
  std::set<DomainId> domains;
  for (const NodeId node : nodes) {
    const auto around = state.topology().of_node(node);
    domains.insert(around.begin(), around.end());
  }
  widths.resize(1 + state.topology().levels().size());
  for (const DomainId domain : domains) ++widths[1 + state.topology().domain(domain).level];
  return widths;
}

}  // namespace

bool image_is_missing(const State& state, const JobSpec& spec, std::span<const TaskPlacement> places) {
  return std::any_of(places.begin(), places.end(), [&](const TaskPlacement& place) {
    return holders_of(state, spec, place) != nullptr && !finds_image(state, spec, place);
  });
}

bool are_nearer_to_images(const State& state, const JobSpec& spec, std::span<const TaskPlacement> others,
                          std::span<const TaskPlacement> places) {
  const auto found = [&](std::span<const TaskPlacement> some) {
    return std::count_if(some.begin(), some.end(), [&](const auto& one) { return finds_image(state, spec, one); });
  };
  if (others.size() < places.size() || found(others) <= found(places)) return false;
  const std::vector<std::size_t> theirs = widths(state, others);
  const std::vector<std::size_t> ours = widths(state, places);
  for (std::size_t i = 0; i < ours.size(); ++i) {
    if (spec.spread ? theirs[i] < ours[i] : theirs[i] > ours[i]) return false;
  }
  return true;
}

}  // namespace berth::sched
