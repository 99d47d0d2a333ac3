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
  offers_.clear();
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
    entries_.push_back({sorted, {}});
    worths_.emplace_back();
  }
  return entry->second;
}

std::span<const Offer> NodeTable::offers_of(Id id) { return offers_of(current(id)); }

NodeTable::RequestId NodeTable::id_of(const Request& request) {
  const auto [entry, inserted] = request_ids_.try_emplace(request, static_cast<RequestId>(requests_.size()));
  if (inserted) requests_.push_back(request);
  return entry->second;
}

std::span<const NodeTable::Option> NodeTable::options(Id id, RequestId request) {
  if (entries_[id].options.size() <= request) entries_[id].options.resize(requests_.size(), 0);
  if (entries_[id].options[request] == 0) {
    const NodeFree before = entries_[id].node;  // a copy: find_options() may move the entries
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
  // The CPU rest saves one unit if it covers the part of the request beyond whole units.
  const std::int64_t over = requests_[request].cpu_milli % before.cpu_unit;
  const bool saves = over > 0 && cpu_rest >= over;
  const std::uint64_t key = (std::uint64_t{id} << 32U | std::uint64_t{request} << 12U |
                             static_cast<std::uint64_t>(gpu_free) << 1U | (saves ? 1U : 0U));
  if (const Id* known = afters_.find(key)) return *known;
  const Id found = id_of(fragmentation::after(NodeFree(before), requests_[request], gpu_free, cpu_rest));
  afters_.insert(key, found);
  return found;
}

std::int64_t NodeTable::unusable_of(Id id) {
  Worth& worth = current(id);
  if (worth.unusable == kNotAsked) worth.unusable = unusable_milli(entries_[id].node, mix_);
  return worth.unusable;
}

std::int64_t NodeTable::value(Id id, std::span<const std::int64_t> prices) {
  Worth& worth = current(id);
  if (!worth.filled) {
    const NodeFree& node = entries_[id].node;
    worth.fill = expected_fill(node, mix_, futures(node.model));
    worth.filled = true;
  }
  return node_value(worth.fill, offers_of(worth), prices);
}

NodeTable::Worth& NodeTable::current(Id id) {
  Worth& worth = worths_[id];
  if (worth.mix_version == mix_version_) return worth;
  worth.mix_version = mix_version_;
  worth.first_offer = static_cast<std::uint32_t>(offers_.size());
  append_offers(entries_[id].node, mix_, offers_);
  worth.offers = static_cast<std::uint16_t>(offers_.size() - worth.first_offer);
  worth.unusable = kNotAsked;  // computed on demand, because most states only follow a possible placement
  worth.filled = false;
  return worth;
}

const Futures& NodeTable::futures(std::uint32_t model) {
  const auto [entry, inserted] = futures_.try_emplace(model);
  if (inserted) entry->second = futures_for(mix_, model);
  return entry->second;
}

}  // namespace berth::state::fragmentation
