#include "sched/near_gpus.h"

#include <algorithm>

#include "base/check.h"

namespace berth::sched {

namespace {

using Gpus = std::vector<std::uint8_t>;
enum class Near { kNuma, kIsland };

class Picking {
 public:
  Picking(const NodeSpec& node, std::size_t count) : node_(node), wanted_(count) {}

  Gpus run(std::span<const std::uint8_t> idle) && {
    std::vector<Gpus> islands = parts({idle.begin(), idle.end()}, Near::kIsland);
    const Gpus* island = tightest(islands);
    take(island != nullptr ? *island : Gpus(idle.begin(), idle.end()), Near::kNuma);
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

}  // namespace

std::vector<std::uint8_t> near_gpus(const NodeSpec& node, std::span<const std::uint8_t> idle, std::size_t count) {
  BERTH_CHECK(count <= idle.size());
  if (count == idle.size() || all_alike(node, idle)) {
    return {idle.begin(), idle.begin() + static_cast<std::ptrdiff_t>(count)};
  }
  return Picking(node, count).run(idle);
}

}  // namespace berth::sched
