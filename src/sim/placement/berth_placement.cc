#include "sim/placement/berth_placement.h"

#include <algorithm>

#include "base/check.h"
#include "sim/placement/tie_order.h"

namespace berth::sim::placement {
namespace {

namespace fragmentation = state::fragmentation;

fragmentation::Request request_of(const PodShape& shape) {
  return {shape.cpu_milli, shape.gpus, shape.milli, shape.models};
}

fragmentation::NodeFree free_of(const FleetNode& node) {
  fragmentation::NodeFree free{node.cpu_left, node.model, node.gpus, {}};
  static_assert(kMaxGpusPerNode == fragmentation::kMaxGpusPerNode);
  std::copy(node.free.begin(), node.free.begin() + node.gpus, free.free.begin());
  return fragmentation::canonical(free);
}

GpuList gpus_with(const FleetNode& node, const PodShape& shape, std::int32_t gpu_free) {
  if (!shape.is_share()) return tightest_gpus(node, shape);
  const auto free = node.free_gpus();
  GpuList list;
  list.add(static_cast<std::size_t>(std::find(free.begin(), free.end(), gpu_free) - free.begin()));
  return list;
}

}  // namespace

BerthPlacement::BerthPlacement(const PolicySetup& setup, Knowledge knowledge)
    : knowledge_(knowledge), given_(setup.mix), rank_(setup.nodes) {
  const auto order = tie_order(setup.nodes, setup.seed);
  for (std::uint32_t place = 0; place < order.size(); ++place) rank_[order[place]] = place;
}

std::optional<Choice> BerthPlacement::pick(const Fleet& fleet, const PodShape& shape) {
  if (!table_) start(fleet);
  follow_changes(fleet);
  if (knowledge_ == Knowledge::kLearned && table_->observe(request_of(shape))) sum_up();
  const auto request = table_->id_of(request_of(shape));

  const auto prices = fragmentation::scarcity_prices(summary_, table_->mix());
  std::optional<Candidate> best;
  for (const auto& [state, nodes] : nodes_in_) {
    const auto candidate = best_in_state(state, fleet, shape, request, prices);
    if (!candidate) continue;
    const bool better =
        !best || candidate->gain > best->gain || (candidate->gain == best->gain && candidate->node < best->node);
    if (better) best = candidate;
  }
  if (!best) return std::nullopt;
  const auto node = best->node.second;
  return Choice{node, gpus_with(fleet[node], shape, best->gpu_free)};
}

// The best GPU for it on a node of this state, and the first such node that has
// the memory.
std::optional<BerthPlacement::Candidate> BerthPlacement::best_in_state(Table::Id state, const Fleet& fleet,
                                                                       const PodShape& shape, Table::RequestId request,
                                                                       std::span<const std::int64_t> prices) {
  const auto options = table_->options(state, request);
  if (options.empty()) return std::nullopt;
  const auto& nodes = nodes_in_.at(state);
  const auto node = std::find_if(nodes.begin(), nodes.end(), [&](const RankedNode& ranked) {
    return fleet[ranked.second].mem_left >= shape.mem_mib;
  });
  if (node == nodes.end()) return std::nullopt;

  const auto before = table_->value(state, prices);
  std::optional<Candidate> best;
  for (const auto& option : options) {
    const auto gain = table_->value(option.after, prices) - before;
    if (!best || gain > best->gain) best = Candidate{gain, *node, option.gpu_free};
  }
  return best;
}

void BerthPlacement::start(const Fleet& fleet) {
  BERTH_CHECK(fleet.size() == rank_.size());
  std::uint32_t largest = 0;
  for (const auto& node : fleet) largest = std::max(largest, node.gpus);
  const auto node_gpus = static_cast<std::int32_t>(largest);
  std::vector<fragmentation::Group> groups;
  for (const auto& pod : given_) groups.push_back({request_of(pod.shape), pod.count});
  table_.emplace(knowledge_ == Knowledge::kGiven ? fragmentation::Mix::given(groups, node_gpus)
                                                 : fragmentation::Mix(node_gpus));
  for (std::uint32_t node = 0; node < fleet.size(); ++node) {
    state_of_.push_back(table_->id_of(free_of(fleet[node])));
    nodes_in_[state_of_[node]].insert({rank_[node], node});
  }
  changed_.clear();
  sum_up();
}

void BerthPlacement::follow_changes(const Fleet& fleet) {
  for (const auto node : changed_) move_node(node, table_->id_of(free_of(fleet[node])));
  changed_.clear();
}

void BerthPlacement::move_node(std::uint32_t node, Table::Id to) {
  const auto from = state_of_[node];
  if (from == to) return;
  auto& left = nodes_in_.at(from);
  left.erase({rank_[node], node});
  if (left.empty()) nodes_in_.erase(from);
  nodes_in_[to].insert({rank_[node], node});
  state_of_[node] = to;
  summary_.add(table_->node(from), table_->offers_of(from), -1);
  summary_.add(table_->node(to), table_->offers_of(to), 1);
}

void BerthPlacement::sum_up() {
  summary_ = {};
  summary_.slots.resize(table_->mix().groups().size());
  for (const auto& [state, nodes] : nodes_in_) {
    summary_.add(table_->node(state), table_->offers_of(state), static_cast<std::int64_t>(nodes.size()));
  }
}

}  // namespace berth::sim::placement
