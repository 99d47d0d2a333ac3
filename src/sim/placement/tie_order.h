#pragma once
// The order of nodes that decides between equal scores: random, but fixed for a run by its seed.

#include <cstdint>
#include <vector>

namespace berth::sim::placement {

std::vector<std::uint32_t> tie_order(std::size_t nodes, std::uint64_t seed);

}  // namespace berth::sim::placement
