#include "sched/place/feasibility.h"

#include <algorithm>

namespace berth::sched {

namespace {

using state::NodeShape;
using state::NodeState;

constexpr std::size_t kMostGroups = 64;
constexpr std::size_t kMostInEverySet =
    4;  // up to so many groups each set is checked; of more, each group and all together

using Room = WhenEmpty::Room;

Room asked_by(const TaskRequest& request) { return {request.total_gpu_milli(), request.cpu_milli, request.memory_mib}; }

Room room_of(const NodeShape& shape, ModelMask models) {
  Room room{0, shape.cpu_milli, shape.memory_mib};
  for (std::size_t m = 0; m < kMaxGpuModels; ++m) {
    if ((models >> m & 1U) != 0) room[0] += std::int64_t{shape.gpus[m]} * kMilli;
  }
  return room;
}

// The weights of one task of the first and of the second of two groups.
struct Weights {
  std::int64_t first = 1;
  std::int64_t second = 1;
};
constexpr std::array<Weights, 5> kWeights = {{{1, 1}, {1, 2}, {2, 1}, {1, 3}, {3, 1}}};
constexpr std::int64_t kMostTried = 64;  // tasks of the first group for which those of the second are counted

bool is_in(std::uint64_t set, std::size_t group) { return (set >> group & 1U) != 0; }

}  // namespace

WhenEmpty::WhenEmpty(std::span<const TaskRequirements> asks, std::span<const std::int32_t> counts)
    : asks_(asks), counts_(counts) {
  for (std::size_t g = 0; g < std::min(asks.size(), kMostGroups); ++g) {
    if (counts[g] > 0) all_ |= Groups{1} << g;
  }
}

void WhenEmpty::add(const NodeShape& shape, const NodeSpec& node) {
  Groups labelled = 0;
  for (std::size_t g = 0; g < std::min(asks_.size(), kMostGroups); ++g) {
    if (is_in(all_, g) && has_labels(asks_[g].group, node)) labelled |= Groups{1} << g;
  }
  if (labelled != 0) ++nodes_[{labelled, healed(shape)}];
}

void WhenEmpty::add_fleet(const state::State& state) {
  const state::NodeIndex& index = state.node_index();
  if (!std::any_of(asks_.begin(), asks_.end(), selects_by_label)) {
    for (const auto& [shape, nodes] : index.shapes()) add(shape, nodes.known);
    return;
  }
  for (const NodeState& node : state.nodes()) add(index.shape_of(node.id), node.spec);
}

bool WhenEmpty::may_hold() const {
  for (std::size_t a = 0; a < std::min(asks_.size(), kMostInEverySet); ++a) {
    for (std::size_t b = a + 1; b < asks_.size() && asks_.size() <= kMostInEverySet; ++b) {
      if (is_in(all_, a) && is_in(all_, b) && !may_hold_both(a, b)) return false;
    }
  }
  if (asks_.size() > kMostInEverySet) {
    for (std::size_t g = 0; g < std::min(asks_.size(), kMostGroups); ++g) {
      if (is_in(all_, g) && !may_hold(Groups{1} << g)) return false;
    }
    return may_hold(all_);
  }
  for (Groups set = all_; set != 0; set = (set - 1) & all_) {
    if (!may_hold(set)) return false;
  }
  return true;
}

// Compares two sums over the set of groups: the number of tasks, and their requests.
bool WhenEmpty::may_hold(Groups set) const {
  std::int64_t tasks = 0;
  Room asked{};
  for (std::size_t g = 0; g < asks_.size(); ++g) {
    if (!is_in(set, g)) continue;
    const Room one = asked_by(asks_[g].group.request);
    tasks += counts_[g];
    for (std::size_t d = 0; d < asked.size(); ++d) asked[d] += counts_[g] * one[d];
  }
  for (const auto& [which, nodes] : nodes_) {
    const auto& [labelled, shape] = which;
    Groups here = 0;
    ModelMask models = 0;
    for (std::size_t g = 0; g < asks_.size(); ++g) {
      const bool allowed = is_in(set & labelled, g) && asks_[g].classes[shape.node_class.index()];
      if (!allowed || slots_when_empty(asks_[g], shape) == 0) continue;
      here |= Groups{1} << g;
      models |= asks_[g].models;
    }
    if (here == 0) continue;
    tasks -= nodes * tasks_on(shape, here);
    const Room room = room_of(shape, models);
    for (std::size_t d = 0; d < asked.size(); ++d) asked[d] -= nodes * room[d];
  }
  return tasks <= 0 && std::all_of(asked.begin(), asked.end(), [](std::int64_t lacking) { return lacking <= 0; });
}

// Gives each task of two groups a weight. A node holds no more weight than its best mix of both groups, so the sum over
// all nodes must reach the weight of all tasks. It tries several weights: this is the dual of the packing's relaxation
// to fractions of nodes.
bool WhenEmpty::may_hold_both(std::size_t a, std::size_t b) const {
  std::array<std::int64_t, kWeights.size()> lacking{};
  for (std::size_t w = 0; w < kWeights.size(); ++w)
    lacking[w] = kWeights[w].first * counts_[a] + kWeights[w].second * counts_[b];
  for (const auto& [which, nodes] : nodes_) {
    const Groups labelled = which.first;
    const NodeShape& shape = which.second;
    const auto slots = [&](std::size_t g) {
      const bool allowed = is_in(labelled, g) && asks_[g].classes[shape.node_class.index()];
      return allowed ? std::min<std::int64_t>(slots_when_empty(asks_[g], shape), counts_[g]) : std::int64_t{0};
    };
    const std::int64_t most_first = slots(a);
    const std::int64_t most_second = slots(b);
    if (most_first + most_second == 0) continue;
    const Room room = room_of(shape, asks_[a].models | asks_[b].models);
    std::array<std::int64_t, kWeights.size()> best{};
    for (std::int64_t first = 0; first <= std::min(most_first, kMostTried); ++first) {
      const bool many = first == kMostTried;  // this many or more: any number of the second group is assumed to fit
      const std::int64_t here = many ? most_first : first;
      const std::int64_t second = many ? most_second : beside(a, first, b, most_second, room);
      for (std::size_t w = 0; w < kWeights.size(); ++w)
        best[w] = std::max(best[w], kWeights[w].first * here + kWeights[w].second * second);
    }
    for (std::size_t w = 0; w < kWeights.size(); ++w) lacking[w] -= nodes * best[w];
  }
  return std::all_of(lacking.begin(), lacking.end(), [](std::int64_t some) { return some <= 0; });
}

// Returns how many tasks of group `b` have room beside `tasks` of group `a`.
std::int64_t WhenEmpty::beside(std::size_t a, std::int64_t tasks, std::size_t b, std::int64_t most,
                               const Room& room) const {
  if (asks_[a].exclusive) return tasks > 0 ? 0 : most;
  const Room first = asked_by(asks_[a].group.request);
  const Room second = asked_by(asks_[b].group.request);
  for (std::size_t d = 0; d < room.size(); ++d) {
    if (second[d] > 0) most = std::min(most, std::max<std::int64_t>(0, room[d] - tasks * first[d]) / second[d]);
  }
  return most;
}

// Returns an upper bound on the tasks of these groups that one node of the shape can hold.
std::int64_t WhenEmpty::tasks_on(const NodeShape& shape, Groups set) const {
  std::vector<std::size_t> groups;
  std::int64_t most = 0;
  ModelMask models = 0;
  for (std::size_t g = 0; g < asks_.size(); ++g) {
    if (!is_in(set, g)) continue;
    if (asks_[g].exclusive) return 1;
    groups.push_back(g);
    most += std::min<std::int64_t>(slots_when_empty(asks_[g], shape), counts_[g]);
    models |= asks_[g].models;
  }
  const Room room = room_of(shape, models);
  for (std::size_t d = 0; d < room.size(); ++d) {
    const auto asked = [&](std::size_t g) { return asked_by(asks_[g].group.request)[d]; };
    std::sort(groups.begin(), groups.end(), [&](std::size_t a, std::size_t b) { return asked(a) < asked(b); });
    std::int64_t left = room[d];
    std::int64_t tasks = 0;
    for (const std::size_t g : groups) {
      const std::int64_t fit = asked(g) == 0 ? counts_[g] : std::min<std::int64_t>(counts_[g], left / asked(g));
      tasks += fit;
      left -= fit * asked(g);
    }
    most = std::min(most, tasks);
  }
  return most;
}

}  // namespace berth::sched
