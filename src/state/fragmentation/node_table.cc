#include "state/fragmentation/node_table.h"

#include "base/hash.h"

namespace berth::state::fragmentation {
namespace {

constexpr std::int64_t kNotAsked = -1;

}  // namespace

std::size_t NodeTable::Hash::operator()(const NodeFree& node) const {
  Hasher hasher;
  hasher.add(static_cast<std::uint64_t>(node.cpu_milli)).add(std::uint64_t{node.model} << 32U | node.gpus);
  for (std::uint32_t gpu = 0; gpu + 1 < node.gpus; gpu += 2) {
    hasher.add(static_cast<std::uint64_t>(node.free[gpu]) << 32U | static_cast<std::uint64_t>(node.free[gpu + 1]));
  }
  if (node.gpus % 2 == 1) hasher.add(static_cast<std::uint64_t>(node.free[node.gpus - 1]));
  return hasher.digest();
}

void NodeTable::mix_changed() {
  ++mix_version_;
  futures_.clear();
}

bool NodeTable::observe(const Request& request, std::int64_t times) {
  if (!mix_.observe(request, times)) return false;
  mix_changed();
  return true;
}

bool NodeTable::set_node_gpus(std::int32_t node_gpus) {
  if (!mix_.set_node_gpus(node_gpus)) return false;
  mix_changed();
  return true;
}

NodeTable::Id NodeTable::id_of(const NodeFree& node) {
  const auto sorted = canonical(node);
  const auto [entry, inserted] = ids_.try_emplace(sorted, static_cast<Id>(entries_.size()));
  if (inserted) {
    entries_.emplace_back();
    entries_.back().node = sorted;
  }
  return entry->second;
}

std::span<const std::int64_t> NodeTable::slots_of(Id id) { return current(id).slots; }

NodeTable::RequestId NodeTable::id_of(const Request& request) {
  const auto [entry, inserted] = request_ids_.try_emplace(request, static_cast<RequestId>(requests_.size()));
  if (inserted) requests_.push_back(request);
  return entry->second;
}

std::span<const NodeTable::Option> NodeTable::options(Id id, RequestId request) {
  if (entries_[id].options.size() <= request) entries_[id].options.resize(requests_.size(), 0);
  if (entries_[id].options[request] == 0) {
    const NodeFree before = entries_[id].node;  // finding them may move the entries
    option_lists_.push_back(find_options(before, requests_[request]));
    entries_[id].options[request] = static_cast<std::uint32_t>(option_lists_.size());
  }
  return option_lists_[entries_[id].options[request] - 1];
}

std::vector<NodeTable::Option> NodeTable::find_options(const NodeFree& before, const Request& request) {
  if (slots(before, request) == 0) return {};
  if (!request.is_share()) return {{kWholeGpu, id_of(after(before, request, kWholeGpu))}};
  std::vector<Option> found;
  std::int32_t tried = -1;
  for (const auto milli : before.free_gpus()) {
    if (milli < request.milli || milli == tried) continue;
    tried = milli;
    found.push_back({milli, id_of(after(before, request, milli))});
  }
  return found;
}

NodeTable::Id NodeTable::state_after(Id id, RequestId request, std::int32_t gpu_free, std::int64_t cpu_rest) {
  const NodeFree& before = entries_[id].node;
  // The rest saves a unit when it covers what the request takes of one beyond whole ones.
  const std::int64_t over = requests_[request].cpu_milli % before.cpu_unit;
  const bool saves = over > 0 && cpu_rest >= over;
  const std::uint64_t key = (std::uint64_t{id} << 32U | std::uint64_t{request} << 12U |
                             static_cast<std::uint64_t>(gpu_free) << 1U | (saves ? 1U : 0U));
  if (const auto known = afters_.find(key); known != afters_.end()) return known->second;
  const Id found = id_of(fragmentation::after(NodeFree(before), requests_[request], gpu_free, cpu_rest));
  afters_.emplace(key, found);
  return found;
}

std::int64_t NodeTable::unusable_of(Id id) {
  auto& entry = current(id);
  if (entry.unusable == kNotAsked) entry.unusable = unusable_milli(entry.node, mix_);
  return entry.unusable;
}

std::int64_t NodeTable::value(Id id, std::span<const std::int64_t> prices) {
  auto& entry = current(id);
  if (!entry.filled) {
    entry.fill = expected_fill(entry.node, mix_, futures(entry.node.model));
    entry.filled = true;
  }
  return node_value(entry.fill, entry.slots, prices);
}

NodeTable::Entry& NodeTable::current(Id id) {
  auto& entry = entries_[id];
  if (entry.mix_version == mix_version_) return entry;
  entry.mix_version = mix_version_;
  entry.slots.clear();
  for (const auto& group : mix_.groups()) entry.slots.push_back(slots(entry.node, group.request));
  entry.unusable = kNotAsked;  // most states are only those that a node might have next
  entry.filled = false;
  return entry;
}

std::span<const std::uint16_t> NodeTable::futures(std::uint32_t model) {
  const auto [entry, inserted] = futures_.try_emplace(model);
  if (inserted) entry->second = futures_for(mix_, model);
  return entry->second;
}

}  // namespace berth::state::fragmentation
