#include "sched/near_gpus.h"

#include <algorithm>
#include <set>

#include "base/check.h"

namespace berth::sched {

namespace {

using Gpus = std::vector<std::uint8_t>;
enum class Near { kNuma, kIsland };

class Picking {
 public:
  Picking(const NodeSpec& node, std::size_t count) : node_(node), wanted_(count) {}

  // Within one island if one has enough, else by `near`.
  Gpus by_island(std::span<const std::uint8_t> idle, Near near) && {
    const std::vector<Gpus> islands = parts({idle.begin(), idle.end()}, Near::kIsland);
    const Gpus* island = tightest(islands);
    return std::move(*this).by(near, island != nullptr ? *island : Gpus(idle.begin(), idle.end()));
  }

  Gpus by(Near near, const Gpus& idle) && {
    take(idle, near);
    std::sort(picked_.begin(), picked_.end());
    return std::move(picked_);
  }

 private:
  std::int32_t place_of(std::uint8_t gpu, Near near) const {
    return near == Near::kNuma ? node_.gpus[gpu].numa : node_.gpus[gpu].nvlink_island;
  }

  std::vector<Gpus> parts(const Gpus& gpus, Near near) const {
    std::vector<Gpus> parts;
    for (const std::uint8_t gpu : gpus) {
      auto part = std::find_if(parts.begin(), parts.end(),
                               [&](const Gpus& one) { return place_of(one.front(), near) == place_of(gpu, near); });
      if (part == parts.end()) part = parts.insert(part, Gpus());
      part->push_back(gpu);
    }
    return parts;
  }

  // The part with the fewest that has all that is still wanted.
  const Gpus* tightest(const std::vector<Gpus>& parts) const {
    const Gpus* best = nullptr;
    for (const Gpus& part : parts) {
      if (part.size() >= wanted_ && (best == nullptr || part.size() < best->size())) best = &part;
    }
    return best;
  }

  void take(const Gpus& gpus, Near near) {
    std::vector<Gpus> left = parts(gpus, near);
    while (wanted_ > 0) {
      const Gpus* all = tightest(left);
      if (all == nullptr) {
        const auto most = std::max_element(left.begin(), left.end(),
                                           [](const Gpus& a, const Gpus& b) { return a.size() < b.size(); });
        BERTH_CHECK(most != left.end());
        pick(*most, most->size());
        left.erase(most);
      } else if (near == Near::kNuma) {
        take(Gpus(*all), Near::kIsland);
      } else {
        pick(*all, wanted_);
      }
    }
  }

  void pick(const Gpus& gpus, std::size_t count) {
    picked_.insert(picked_.end(), gpus.begin(), gpus.begin() + static_cast<std::ptrdiff_t>(count));
    wanted_ -= count;
  }

  const NodeSpec& node_;
  std::size_t wanted_;
  Gpus picked_;
};

bool all_alike(const NodeSpec& node, std::span<const std::uint8_t> idle) {
  return std::all_of(idle.begin(), idle.end(), [&](std::uint8_t gpu) {
    const Gpu& first = node.gpus[idle.front()];
    return node.gpus[gpu].numa == first.numa && node.gpus[gpu].nvlink_island == first.nvlink_island;
  });
}

std::size_t domains_of(const NodeSpec& node, const Gpus& gpus) {
  std::set<std::int32_t> domains;
  for (const std::uint8_t gpu : gpus) domains.insert(node.gpus[gpu].numa);
  return domains.size();
}

}  // namespace

std::vector<std::uint8_t> near_gpus(const NodeSpec& node, std::span<const std::uint8_t> idle, std::size_t count) {
  BERTH_CHECK(count <= idle.size());
  if (count == idle.size() || all_alike(node, idle)) {
    return {idle.begin(), idle.begin() + static_cast<std::ptrdiff_t>(count)};
  }
  return Picking(node, count).by_island(idle, Near::kNuma);
}

std::vector<std::uint8_t> near_gpus_within(const NodeSpec& node, std::span<const std::uint8_t> idle, std::size_t count,
                                           std::size_t most_domains) {
  Gpus picked = near_gpus(node, idle, count);
  if (domains_of(node, picked) <= most_domains) return picked;
  // Whole domains, the largest first, and then the tightest that has the rest: no choice has fewer.
  picked = Picking(node, count).by(Near::kNuma, {idle.begin(), idle.end()});
  return domains_of(node, picked) <= most_domains ? picked : Gpus();
}

std::vector<std::uint8_t> linked_gpus(const NodeSpec& node, std::span<const std::uint8_t> idle, std::size_t count) {
  BERTH_CHECK(count <= idle.size());
  return Picking(node, count).by_island(idle, Near::kIsland);
}

}  // namespace berth::sched
