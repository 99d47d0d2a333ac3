#include "sched/fragmentation/node_table.h"

namespace berth::sched::fragmentation {

bool NodeTable::observe(const Request& request) {
  if (!mix_.observe(request)) return false;
  ++mix_version_;
  futures_.clear();
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

std::int64_t NodeTable::value(Id id, std::span<const std::int64_t> prices) {
  const auto& entry = current(id);
  return node_value(entry.fill, entry.slots, prices);
}

NodeTable::Entry& NodeTable::current(Id id) {
  auto& entry = entries_[id];
  if (entry.mix_version == mix_version_) return entry;
  entry.mix_version = mix_version_;
  entry.slots.clear();
  for (const auto& group : mix_.groups()) entry.slots.push_back(slots(entry.node, group.request));
  entry.fill = expected_fill(entry.node, mix_, futures(entry.node.model));
  return entry;
}

std::span<const std::uint16_t> NodeTable::futures(std::uint32_t model) {
  const auto [entry, inserted] = futures_.try_emplace(model);
  if (inserted) entry->second = futures_for(mix_, model);
  return entry->second;
}

}  // namespace berth::sched::fragmentation
