#include "sched/fragmentation/mix.h"

#include <algorithm>
#include <utility>

namespace berth::sched::fragmentation {
namespace {

constexpr std::int64_t kWeightScale = 1000;  // so that a few per mille of the total is an integer, exactly

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

bool Mix::observe(const Request& request) {
  count(request);
  if (observed_ >= kAgeAt) age();
  if (observed_ < regroup_at_) return false;
  regroup_at_ = observed_ + std::max<std::int64_t>(1, observed_ / 4);
  regroup();
  return true;
}

void Mix::count(const Request& request) {
  ++observed_;
  if (const auto known = counts_.find(request); known != counts_.end()) {
    ++known->second;
    return;
  }
  std::int64_t inherited = 0;
  if (counts_.size() >= kTracked) {
    const auto rarest = std::min_element(counts_.begin(), counts_.end(),
                                         [](const auto& a, const auto& b) { return a.second < b.second; });
    inherited = rarest->second;
    counts_.erase(rarest);
  }
  counts_[request] = inherited + 1;
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
  groups_ = std::move(groups);
  std::int64_t count = 0;
  for (auto& group : groups_) {
    count += group.weight;
    group.weight *= kWeightScale;
  }
  const auto milli = gpu_milli(groups_);
  if (node_gpus_ > 0 && milli > 0) {
    // Per GPU first, rounded down: the product of both sums need not fit.
    const auto cpu = gpu_cpu_milli(groups_) / std::max<std::int64_t>(1, milli / kWholeGpu) * node_gpus_;
    groups_.push_back({{cpu, node_gpus_, kWholeGpu, kAnyModel}, count * kWholeNodePerMille});
  }
  total_weight_ = 0;
  for (const auto& group : groups_) total_weight_ += group.weight;
  weighted_milli_ = gpu_milli(groups_);
}

}  // namespace berth::sched::fragmentation
