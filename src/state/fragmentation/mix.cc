#include "state/fragmentation/mix.h"

#include <algorithm>
#include <utility>

namespace berth::state::fragmentation {
namespace {

constexpr std::int64_t kWeightScale = 1000;  // so that a few per mille of the total are an exact integer

std::int64_t gpu_cpu_milli(std::span<const Group> groups) {
  std::int64_t sum = 0;
  for (const auto& group : groups) sum += group.request.gpus > 0 ? group.weight * group.request.cpu_milli : 0;
  return sum;
}

std::int64_t gpu_milli(std::span<const Group> groups) {
  std::int64_t sum = 0;
  for (const auto& group : groups) sum += group.weight * group.request.total_milli();
  return sum;
}

}  // namespace

Mix Mix::given(std::span<const Group> groups, std::int32_t node_gpus) {
  Mix mix(node_gpus);
  mix.adopt({groups.begin(), groups.end()});
  return mix;
}

bool Mix::observe(const Request& request, std::int64_t times) {
  count(request, times);
  if (observed_ >= kAgeAt) age();
  if (observed_ < regroup_at_) return false;
  regroup_at_ = observed_ + std::max<std::int64_t>(1, observed_ / 4);
  regroup();
  return true;
}

bool Mix::set_node_gpus(std::int32_t node_gpus) {
  if (node_gpus == node_gpus_) return false;
  node_gpus_ = node_gpus;
  weigh();
  return true;
}

void Mix::count(const Request& request, std::int64_t times) {
  observed_ += times;
  if (const auto known = counts_.find(request); known != counts_.end()) {
    known->second += times;
    return;
  }
  std::int64_t inherited = 0;
  if (counts_.size() >= kTracked) {
    const auto rarest = std::min_element(counts_.begin(), counts_.end(),
                                         [](const auto& a, const auto& b) { return a.second < b.second; });
    inherited = rarest->second;
    counts_.erase(rarest);
  }
  counts_[request] = inherited + times;
}

void Mix::age() {
  observed_ = 0;
  for (auto entry = counts_.begin(); entry != counts_.end();) {
    entry->second /= 2;
    observed_ += entry->second;
    entry = entry->second == 0 ? counts_.erase(entry) : std::next(entry);
  }
  regroup_at_ = observed_;
}

void Mix::regroup() {
  std::vector<Group> sorted;
  for (const auto& [request, count] : counts_) sorted.push_back({request, count});
  std::stable_sort(sorted.begin(), sorted.end(), [](const Group& a, const Group& b) { return a.weight > b.weight; });
  std::size_t kept = 0;
  for (std::int64_t covered = 0; kept < sorted.size() && kept < kGroups && covered * 100 < observed_ * 95; ++kept) {
    covered += sorted[kept].weight;
  }
  sorted.resize(kept);
  adopt(std::move(sorted));
}

void Mix::adopt(std::vector<Group> groups) {
  counted_ = std::move(groups);
  weigh();
}

void Mix::weigh() {
  groups_ = counted_;
  std::int64_t count = 0;
  for (auto& group : groups_) {
    count += group.weight;
    group.weight *= kWeightScale;
  }
  const auto milli = gpu_milli(groups_);
  if (node_gpus_ > 0 && milli > 0) {
    // Divides by the GPUs first, rounded down: the product of both sums could overflow.
    const auto cpu = gpu_cpu_milli(groups_) / std::max<std::int64_t>(1, milli / kWholeGpu) * node_gpus_;
    groups_.push_back({{cpu, node_gpus_, kWholeGpu, kAnyModel}, count * kWholeNodePerMille});
  }
  total_weight_ = 0;
  for (const auto& group : groups_) total_weight_ += group.weight;
  weighted_milli_ = gpu_milli(groups_);
}

Mix::Saved Mix::save() const {
  Saved saved{node_gpus_, regroup_at_, {}, counted_};
  for (const auto& [request, count] : counts_) saved.counts.push_back({request, count});
  return saved;
}

bool Mix::load(const Saved& saved) {
  const auto sound = [](const Group& group) {
    const Request& request = group.request;
    const bool gpus = request.gpus >= 0 && request.gpus <= static_cast<std::int32_t>(kMaxGpusPerNode) &&
                      request.milli > 0 && request.milli <= kWholeGpu &&
                      (request.gpus == 1 || !(request.milli < kWholeGpu));
    return gpus && request.cpu_milli >= 0 && group.weight > 0 && group.weight <= 2 * kAgeAt;
  };
  if (saved.counts.size() > kTracked || saved.groups.size() > kGroups || saved.node_gpus < 0 ||
      saved.node_gpus > static_cast<std::int32_t>(kMaxGpusPerNode) ||
      !std::all_of(saved.counts.begin(), saved.counts.end(), sound) ||
      !std::all_of(saved.groups.begin(), saved.groups.end(), sound)) {
    return false;
  }
  node_gpus_ = saved.node_gpus;
  regroup_at_ = saved.regroup_at;
  counts_.clear();
  observed_ = 0;
  for (const Group& group : saved.counts) {
    observed_ += group.weight;
    counts_.emplace(group.request, group.weight);
  }
  adopt(saved.groups);
  return counts_.size() == saved.counts.size();
}

}  // namespace berth::state::fragmentation
