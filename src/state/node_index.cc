#include "state/node_index.h"

#include <algorithm>
#include <functional>
#include <set>

#include "base/check.h"

namespace berth::state {

namespace {

std::uint64_t packed(const GpuSlot& gpu) {
  const std::uint64_t slices = gpu.unavailable_slices();
  const TrustDomainId taken_by = gpu.sharers > 0 ? gpu.share_domain : gpu.nominated_domain;
  const auto domain = static_cast<std::uint64_t>(taken_by.value());
  return slices << 48 | static_cast<std::uint64_t>(gpu.model.value()) << 32 |
         static_cast<std::uint64_t>(gpu.available_milli()) << 16 | domain;
}

std::int64_t sum_of(const GpuFills& gpus) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < gpus.size(); ++i) sum += gpus[i].available_milli;
  return sum;
}

std::uint32_t models_of(const GpuFills& gpus) {
  std::uint32_t models = 0;
  for (std::size_t i = 0; i < gpus.size(); ++i) models |= std::uint32_t{1} << gpus[i].model.index();
  return models;
}

Reach reach_of(const GpuFills& gpus) {
  std::array<std::uint8_t, kMaxGpuModels> whole{};
  std::int64_t largest = 0;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    largest = std::max<std::int64_t>(largest, gpus[i].available_milli);
    if (gpus[i].available_milli == kMilli) ++whole[gpus[i].model.index()];
  }
  return Reach::of(*std::max_element(whole.begin(), whole.end()), largest);
}

NodeShape shape_when_empty(const NodeState& node, NodeClassId node_class) {
  NodeShape shape;
  shape.node_class = node_class;
  shape.cpu_milli = node.spec.cpu_milli;
  shape.memory_mib = node.spec.memory_mib;
  std::map<std::pair<std::int32_t, GpuModelId>, NumaPart> parts;  // by NUMA domain and model
  std::set<std::int32_t> domains;
  for (std::size_t g = 0; g < node.gpus.size(); ++g) {
    const GpuSlot& gpu = node.gpus[g];
    const std::int32_t domain = node.spec.gpus[g].numa;
    NumaPart& part = parts[{domain, gpu.model}];
    part.model = static_cast<std::uint8_t>(gpu.model.index());
    ++part.all;
    if (!gpu.healthy) continue;
    ++part.healthy;
    ++shape.gpus[gpu.model.index()];
    domains.insert(domain);
  }
  std::size_t at = 0;
  for (const auto& [key, part] : parts) shape.numa[at++] = part;
  std::sort(shape.numa.begin(), shape.numa.end(), std::greater<>());
  shape.numa_domains = static_cast<std::uint8_t>(domains.size());
  return shape;
}

}  // namespace

GpuFills::GpuFills(const NodeState& node) : count_(node.gpus.size()) {
  for (std::size_t i = 0; i < count_; ++i) packed_[i] = packed(node.gpus[i]);
  std::sort(packed_.begin(), packed_.begin() + static_cast<std::ptrdiff_t>(count_));
}

NodeClassId NodeIndex::intern_class(const NodeState& node) {
  const NodeClass wanted{node.pool, node.spec.taints, node.spec.containers, node.spec.countables};
  const auto found = std::find(classes_.begin(), classes_.end(), wanted);
  const auto index = static_cast<std::uint16_t>(found - classes_.begin());
  if (found == classes_.end()) {
    classes_.push_back(wanted);
    available_.emplace_back();
  }
  return NodeClassId(index);
}

void NodeIndex::install(const NodeState& node) {
  if (node.id.index() >= entries_.size()) entries_.resize(node.id.index() + 1);
  Entry& entry = entries_[node.id.index()];
  if (entry.listed) unlist(node.id, entry);
  if (entry.installed) count_shape(entry, -1);
  entry.node_class = intern_class(node);
  entry.shape = shape_when_empty(node, entry.node_class);
  entry.there = node.status != NodeStatus::kLost;
  entry.installed = true;
  count_shape(entry, +1);
  refresh(node);
}

void NodeIndex::refresh(const NodeState& node) {
  Entry& entry = entries_[node.id.index()];
  if (!node.takes_tasks()) {
    if (entry.listed) unlist(node.id, entry);
    return;
  }
  const GpuFills gpus(node);
  const GroupKey key{sum_of(gpus), entry.node_class, gpus};
  if (!entry.listed) {
    list(node, entry, key, {});
  } else if (entry.group->first == key) {
    relist(node, entry, entry.group->second.memory.extract({entry.cpu_milli, node.id}));
  } else {
    list(node, entry, key, unlist(node.id, entry));
  }
}

void NodeIndex::forget_last() {
  Entry& entry = entries_.back();
  if (entry.listed) unlist(NodeId(static_cast<std::uint32_t>(entries_.size() - 1)), entry);
  count_shape(entry, -1);
  entries_.pop_back();
}

NodeGroups& NodeIndex::groups_for(const GpuFills& gpus, Entry& entry) {
  const std::uint32_t models = models_of(gpus);
  const auto known =
      std::find_if(groups_.begin(), groups_.end(), [&](const ModelGroups& one) { return one.models == models; });
  entry.models = static_cast<std::size_t>(known - groups_.begin());
  if (known == groups_.end()) groups_.emplace_back().models = models;
  entry.reach = reach_of(gpus).step();
  return groups_[entry.models].by_reach[entry.reach];
}

// Adds the node to the group of `key`. `place` is its map entry of another group, to be reused, or empty.
void NodeIndex::list(const NodeState& node, Entry& entry, const GroupKey& key, NodeGroup::Place place) {
  entry.group = groups_for(key.gpus, entry).try_emplace(key).first;
  entry.listed = true;
  relist(node, entry, std::move(place));
  count_available(key, +1);
}

// Puts the node into the group that the entry names.
void NodeIndex::relist(const NodeState& node, Entry& entry, NodeGroup::Place place) {
  entry.cpu_milli = node.available_cpu_milli();
  auto& memory = entry.group->second.memory;
  if (place.empty()) {
    memory.emplace(std::pair(entry.cpu_milli, node.id), node.available_memory_mib());
    return;
  }
  place.key().first = entry.cpu_milli;
  place.mapped() = node.available_memory_mib();
  memory.insert(std::move(place));
}

// Removes the node from its group. Returns its map entry for reuse.
NodeGroup::Place NodeIndex::unlist(NodeId node, Entry& entry) {
  count_available(entry.group->first, -1);
  NodeGroup::Place place = entry.group->second.memory.extract({entry.cpu_milli, node});
  BERTH_CHECK(!place.empty());
  if (entry.group->second.memory.empty()) groups_[entry.models].by_reach[entry.reach].erase(entry.group);
  entry.listed = false;
  return place;
}

void NodeIndex::count_available(const GroupKey& key, int sign) {
  for (std::size_t i = 0; i < key.gpus.size(); ++i) {
    const GpuFill gpu = key.gpus[i];
    available_[key.node_class.index()][gpu.model.index()] += sign * std::int64_t{gpu.available_milli};
  }
}

void NodeIndex::count_shape(const Entry& entry, int sign) {
  const auto found = shapes_.try_emplace(entry.shape).first;
  found->second.known += static_cast<std::uint32_t>(sign);
  if (entry.there) found->second.there += static_cast<std::uint32_t>(sign);
  if (found->second.known == 0) shapes_.erase(found);
}

std::size_t NodeIndex::group_count() const {
  std::size_t count = 0;
  for (const ModelGroups& part : groups_) {
    for (const NodeGroups& groups : part.by_reach) count += groups.size();
  }
  return count;
}

bool NodeIndex::describes_same(const NodeIndex& other) const {
  // Class ids depend on the order of installation, so the ids of `other` are translated.
  std::vector<NodeClassId> mine(other.classes_.size());
  for (std::size_t c = 0; c < other.classes_.size(); ++c) {
    const auto found = std::find(classes_.begin(), classes_.end(), other.classes_[c]);
    if (found == classes_.end()) return false;
    mine[c] = NodeClassId(static_cast<std::uint16_t>(found - classes_.begin()));
  }
  // The list of a group follows from its key, so only keys and members are compared.
  NodeGroups groups;
  for (const ModelGroups& part : groups_) {
    for (const NodeGroups& some : part.by_reach) groups.insert(some.begin(), some.end());
  }
  NodeGroups others;
  for (const ModelGroups& part : other.groups_) {
    for (const NodeGroups& some : part.by_reach) {
      for (const auto& [key, group] : some) {
        GroupKey translated = key;
        translated.node_class = mine[key.node_class.index()];
        others.emplace(translated, group);
      }
    }
  }
  std::map<NodeShape, ShapeCount> shapes;
  for (const auto& [shape, count] : other.shapes_) {
    NodeShape translated = shape;
    translated.node_class = mine[shape.node_class.index()];
    shapes.emplace(translated, count);
  }
  auto available = available_;
  for (auto& sums : available) sums = {};
  for (std::size_t c = 0; c < mine.size(); ++c) available[mine[c].index()] = other.available_[c];
  return groups == others && shapes == shapes_ && available == available_;
}

}  // namespace berth::state
