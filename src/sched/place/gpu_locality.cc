#include "sched/place/gpu_locality.h"

#include <algorithm>
#include <array>
#include <bit>
#include <set>
#include <utility>

#include "base/check.h"

namespace berth::sched {

namespace {

using Gpus = std::uint32_t;  // one bit per GPU of the node
static_assert(kMaxGpusPerNode <= 32);
enum class Near { kNuma, kIsland };

Gpus set_of(std::span<const std::uint8_t> gpus) {
  Gpus set = 0;
  for (const std::uint8_t gpu : gpus) set |= Gpus{1} << gpu;
  return set;
}

std::size_t size_of(Gpus gpus) { return static_cast<std::size_t>(std::popcount(gpus)); }
std::size_t first_of(Gpus gpus) { return static_cast<std::size_t>(std::countr_zero(gpus)); }

// The GPUs of a set, split by NUMA domain or island, in the order of the first GPU of each part.
struct Parts {
  std::array<Gpus, kMaxGpusPerNode> sets{};
  std::size_t count = 0;
  std::span<Gpus> all() { return std::span(sets).first(count); }
};

class Picking {
 public:
  Picking(const NodeSpec& node, std::size_t count) : node_(node), wanted_(count) {}

  // Picks within one island if one has enough idle GPUs, else by `near`.
  std::vector<std::uint8_t> by_island(Gpus idle, Near near) {
    Parts islands = parts(idle, Near::kIsland);
    const Gpus* island = tightest(islands.all());
    return by(near, island != nullptr ? *island : idle);
  }

  std::vector<std::uint8_t> by(Near near, Gpus idle) {
    take(idle, near);
    std::vector<std::uint8_t> picked;
    picked.reserve(size_of(picked_));
    for (Gpus left = picked_; left != 0; left &= left - 1) picked.push_back(static_cast<std::uint8_t>(first_of(left)));
    return picked;
  }

 private:
  std::int32_t place_of(std::size_t gpu, Near near) const {
    return near == Near::kNuma ? node_.gpus[gpu].numa : node_.gpus[gpu].nvlink_island;
  }

  Parts parts(Gpus gpus, Near near) const {
    Parts parts;
    for (; gpus != 0; gpus &= gpus - 1) {
      const std::size_t gpu = first_of(gpus);
      std::size_t part = 0;
      while (part < parts.count && place_of(first_of(parts.sets[part]), near) != place_of(gpu, near)) ++part;
      parts.count = std::max(parts.count, part + 1);
      parts.sets[part] |= Gpus{1} << gpu;
    }
    return parts;
  }

  // Returns the smallest part that has all the GPUs still wanted; null if none has.
  const Gpus* tightest(std::span<const Gpus> parts) const {
    const Gpus* best = nullptr;
    for (const Gpus& part : parts) {
      if (size_of(part) >= wanted_ && (best == nullptr || size_of(part) < size_of(*best))) best = &part;
    }
    return best;
  }

  void take(Gpus gpus, Near near) {
    Parts left = parts(gpus, near);
    while (wanted_ > 0) {
      const Gpus* all = tightest(left.all());
      if (all == nullptr) {
        const auto most = std::ranges::max_element(left.all(), {}, size_of);
        BERTH_CHECK(*most != 0);
        pick(std::exchange(*most, 0), wanted_);
      } else if (near == Near::kNuma) {
        take(*all, Near::kIsland);
      } else {
        pick(*all, wanted_);
      }
    }
  }

  // Picks at most `count` of them, the first ones.
  void pick(Gpus gpus, std::size_t count) {
    for (; gpus != 0 && count > 0; gpus &= gpus - 1, --count, --wanted_) picked_ |= Gpus{1} << first_of(gpus);
  }

  const NodeSpec& node_;
  std::size_t wanted_;
  Gpus picked_ = 0;
};

bool all_alike(const NodeSpec& node, std::span<const std::uint8_t> idle) {
  return std::all_of(idle.begin(), idle.end(), [&](std::uint8_t gpu) {
    const Gpu& first = node.gpus[idle.front()];
    return node.gpus[gpu].numa == first.numa && node.gpus[gpu].nvlink_island == first.nvlink_island;
  });
}

std::size_t domains_of(const NodeSpec& node, std::span<const std::uint8_t> gpus) {
  std::set<std::int32_t> domains;
  for (const std::uint8_t gpu : gpus) domains.insert(node.gpus[gpu].numa);
  return domains.size();
}

}  // namespace

std::vector<std::uint8_t> local_gpus(const NodeSpec& node, std::span<const std::uint8_t> idle, std::size_t count) {
  BERTH_CHECK(count <= idle.size());
  if (count == idle.size() || all_alike(node, idle)) {
    return {idle.begin(), idle.begin() + static_cast<std::ptrdiff_t>(count)};
  }
  return Picking(node, count).by_island(set_of(idle), Near::kNuma);
}

std::vector<std::uint8_t> local_gpus_within(const NodeSpec& node, std::span<const std::uint8_t> idle, std::size_t count,
                                            std::size_t most_domains) {
  std::vector<std::uint8_t> picked = local_gpus(node, idle, count);
  if (domains_of(node, picked) <= most_domains) return picked;
  // Whole domains, the largest first, and then the tightest that has the rest: no choice uses fewer domains.
  picked = Picking(node, count).by(Near::kNuma, set_of(idle));
  return domains_of(node, picked) <= most_domains ? picked : std::vector<std::uint8_t>();
}

std::vector<std::uint8_t> linked_gpus(const NodeSpec& node, std::span<const std::uint8_t> idle, std::size_t count) {
  BERTH_CHECK(count <= idle.size());
  return Picking(node, count).by_island(set_of(idle), Near::kIsland);
}

}  // namespace berth::sched
