#include "sched/place/gpu_locality.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "base/random.h"

namespace berth::sched {
namespace {

using Gpus = std::vector<std::uint8_t>;

// Each GPU as (NUMA domain, NVLink island).
NodeSpec node_of(const std::vector<std::pair<int, int>>& places) {
  NodeSpec node;
  for (const auto& [numa, island] : places) {
    Gpu gpu;
    gpu.numa = numa;
    gpu.nvlink_island = island;
    node.gpus.push_back(gpu);
  }
  return node;
}

// Two NUMA domains of two pairs each.
const NodeSpec kPairs = node_of({{0, 0}, {0, 1}, {0, 0}, {0, 1}, {1, 2}, {1, 3}, {1, 2}, {1, 3}});
const Gpus kAll{0, 1, 2, 3, 4, 5, 6, 7};

std::size_t domains_of(const NodeSpec& node, const Gpus& gpus, bool islands) {
  std::set<std::int32_t> domains;
  for (const std::uint8_t gpu : gpus) domains.insert(islands ? node.gpus[gpu].nvlink_island : node.gpus[gpu].numa);
  return domains.size();
}

}  // namespace

TEST_CASE("GPUs of one NVLink island, of the one that is tightest") {
  CHECK(local_gpus(kPairs, kAll, 2) == Gpus{0, 2});
  CHECK(local_gpus(kPairs, Gpus{0, 1, 3, 4}, 1) == Gpus{0});
  CHECK(local_gpus(kPairs, Gpus{0, 1, 3, 4}, 2) == Gpus{1, 3});
}

TEST_CASE("what no island holds stays within a NUMA domain if one holds it") {
  CHECK(local_gpus(kPairs, kAll, 4) == Gpus{0, 1, 2, 3});
  CHECK(local_gpus(kPairs, Gpus{0, 1, 4, 5, 6, 7}, 4) == Gpus{4, 5, 6, 7});
  CHECK(local_gpus(kPairs, Gpus{0, 1, 2, 4, 5, 6, 7}, 3) == Gpus{0, 1, 2});
}

TEST_CASE("what no NUMA domain holds is cut as little as possible") {
  CHECK(local_gpus(kPairs, Gpus{0, 1, 2, 4, 5, 6, 7}, 6) == Gpus{0, 2, 4, 5, 6, 7});
}

TEST_CASE("as many as asked, all idle, in as few domains as any choice") {
  Random random(3);
  for (int i = 0; i < 400; ++i) {
    std::vector<std::pair<int, int>> places;
    for (std::int64_t g = random.between(1, 8); g > 0; --g) {
      const int numa = static_cast<int>(random.below(2));
      places.emplace_back(numa, 2 * numa + static_cast<int>(random.below(2)));
    }
    const NodeSpec node = node_of(places);
    Gpus idle;
    for (std::uint8_t g = 0; g < places.size(); ++g) {
      if (random.chance(700)) idle.push_back(g);
    }
    if (idle.empty()) continue;
    const std::size_t count = 1 + random.below(idle.size());
    const Gpus picked = local_gpus(node, idle, count);
    CHECK_EQ(std::set<std::uint8_t>(picked.begin(), picked.end()).size(), count);
    CHECK(std::includes(idle.begin(), idle.end(), picked.begin(), picked.end()));
    std::size_t fewest_numa = 9;
    std::size_t fewest_islands = 9;
    for (unsigned subset = 0; subset < 1U << idle.size(); ++subset) {
      Gpus other;
      for (std::size_t b = 0; b < idle.size(); ++b) {
        if ((subset >> b & 1U) != 0) other.push_back(idle[b]);
      }
      if (other.size() != count) continue;
      fewest_numa = std::min(fewest_numa, domains_of(node, other, false));
      fewest_islands = std::min(fewest_islands, domains_of(node, other, true));
    }
    CHECK_EQ(domains_of(node, picked, false), fewest_numa);
    if (fewest_islands == 1) CHECK_EQ(domains_of(node, picked, true), 1);
  }
}

}  // namespace berth::sched
