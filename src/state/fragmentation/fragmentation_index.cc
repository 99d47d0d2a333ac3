#include "state/fragmentation/fragmentation_index.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/checked.h"

namespace berth::state {

using fragmentation::kWholeGpu;
using fragmentation::Mix;
using fragmentation::NodeFree;
using fragmentation::Request;

namespace {

constexpr std::int64_t kCpuUnits = 32;  // units of CPU per node

SeenFree seen_free(const NodeState& node) {
  std::array<std::int32_t, fragmentation::kMaxGpusPerNode> milli{};
  for (std::size_t g = 0; g < node.gpus.size(); ++g) milli[g] = node.gpus[g].available_milli();
  return seen_free(node, node.available_cpu_milli(), std::span(milli).first(node.gpus.size()));
}

}  // namespace

SeenFree seen_free(const NodeState& node, std::int64_t cpu_milli, std::span<const std::int32_t> milli) {
  SeenFree seen;
  NodeFree& free = seen.free;
  free.cpu_unit = std::max<std::int64_t>(1, node.spec.cpu_milli / kCpuUnits);
  seen.cpu_rest = cpu_milli % free.cpu_unit;
  free.cpu_milli = cpu_milli - seen.cpu_rest;
  free.model = node.gpus.empty() ? 0 : static_cast<std::uint32_t>(node.gpus.front().model.index());
  free.gpus = static_cast<std::uint32_t>(milli.size());
  std::copy(milli.begin(), milli.end(), free.free.begin());
  free = fragmentation::canonical(free);
  return seen;
}

void FragmentationIndex::observe(const Request& request, std::int64_t times) {
  if (table_.observe(request, times)) sum_up_again();
}

void FragmentationIndex::refresh(const NodeState& node) {
  const std::size_t index = node.id.index();
  if (index >= nodes_.size()) nodes_.resize(index + 1);
  Seen& seen = nodes_[index];
  seen.seen = seen_free(node);
  seen.there = node.takes_tasks();
  const auto gpus = static_cast<std::int32_t>(node.gpus.size());
  if (gpus > table_.mix().node_gpus() && table_.set_node_gpus(gpus)) sum_up_again();
  if (seen.changed) return;
  seen.changed = true;
  changed_.push_back(static_cast<std::uint32_t>(index));
}

void FragmentationIndex::forget_last() {
  const Seen& seen = nodes_.back();
  if (seen.changed) std::erase(changed_, static_cast<std::uint32_t>(nodes_.size() - 1));
  if (seen.counted && summed_) count(seen.id, -1);
  nodes_.pop_back();
}

bool FragmentationIndex::load(const Mix::Saved& saved) {
  Mix mix(0);
  if (!mix.load(saved)) return false;
  table_ = Table(std::move(mix));
  sum_up_again();
  return true;
}

// The next query counts every node again by the current mix.
void FragmentationIndex::sum_up_again() { summed_ = false; }

void FragmentationIndex::count(Table::Id id, int sign) const {
  summary_.add(table_.node(id), table_.offers_of(id), sign);
  unusable_ += sign * table_.unusable_of(id);
}

void FragmentationIndex::forget() const {
  table_ = Table(table_.mix());
  summed_ = false;
}

void FragmentationIndex::catch_up() const {
  if (changed_.empty() && summed_) return;
  if (table_.size() > std::max(kRemembered, 4 * nodes_.size())) forget();
  if (!summed_) {
    summary_ = {};
    summary_.slots.resize(table_.mix().groups().size());
    unusable_ = 0;
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      nodes_[i].counted = false;
      if (nodes_[i].changed) continue;
      nodes_[i].changed = true;
      changed_.push_back(i);
    }
    summed_ = true;
  }
  for (const std::uint32_t index : changed_) {
    Seen& node = nodes_[index];
    node.changed = false;
    // A transaction changed the node and put it back.
    if (node.counted && node.there && table_.node(node.id) == node.seen.free) continue;
    if (node.counted) count(node.id, -1);
    node.id = table_.id_of(node.seen.free);
    node.counted = node.there;
    if (node.counted) count(node.id, +1);
  }
  changed_.clear();
}

std::int64_t FragmentationIndex::idle_milli() const {
  catch_up();
  return summary_.idle_milli;
}

std::int64_t FragmentationIndex::unusable_milli() const {
  catch_up();
  return mix().total_weight() == 0 ? 0 : unusable_ / mix().total_weight();
}

bool FragmentationIndex::describes(std::span<const NodeState> nodes) const {
  catch_up();
  if (nodes_.size() != nodes.size()) return false;
  fragmentation::FleetSummary sum;
  sum.slots.resize(mix().groups().size());
  std::int64_t unusable = 0;
  for (const NodeState& node : nodes) {
    const Seen& seen = nodes_[node.id.index()];
    const SeenFree now = seen_free(node);
    const NodeFree& free = now.free;
    if (seen.seen != now || seen.there != node.takes_tasks()) return false;
    if (!seen.there) continue;
    std::vector<fragmentation::Offer> offers;
    fragmentation::append_offers(free, mix(), offers);
    sum.add(free, offers, 1);
    unusable += fragmentation::unusable_milli(free, mix());
  }
  return sum.idle_milli == summary_.idle_milli && sum.slots == summary_.slots && unusable == unusable_;
}

PlacementLoss::PlacementLoss(const FragmentationIndex& index, const Request& request) : index_(index) {
  index_.catch_up();
  id_ = index_.table_.id_of(request);
  prices_ = fragmentation::scarcity_prices(index_.summary_, index_.mix());
}

PlacementLoss::Before PlacementLoss::before(NodeId node) const {
  const auto& seen = index_.nodes_[node.index()];
  return before(seen.id, seen.seen.cpu_rest);
}

PlacementLoss::Before PlacementLoss::before(const SeenFree& node) const {
  return before(index_.table_.id_of(node.free), node.cpu_rest);
}

PlacementLoss::Before PlacementLoss::before(fragmentation::NodeTable::Id id, std::int64_t cpu_rest) const {
  return {id, cpu_rest, index_.table_.value(id, prices_)};
}

std::int64_t PlacementLoss::on(const Before& node, std::int32_t gpu_free) const {
  auto& table = index_.table_;
  const auto after = table.state_after(node.id, id_, gpu_free, node.cpu_rest);
  return node.value - table.value(after, prices_);
}

}  // namespace berth::state
