#pragma once
// Which of a node's idle GPUs a task gets: such as are near each other, and such that the rest stays near each other.
//
// 1. All within one NVLink island, if one has enough: the one with the fewest idle; within it as in 2.
// 2. Else by NUMA domain: all within the one that has enough with the fewest idle, else as few domains as possible.
// 3. Within a NUMA domain by islands in the same way. Of equals the first on the node.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/node.h"

namespace berth::sched {

// `count` of `idle`, both in the order of the node; there are at least so many.
std::vector<std::uint8_t> local_gpus(const NodeSpec& node, std::span<const std::uint8_t> idle, std::size_t count);

// The same of at most so many NUMA domains, for which an island is passed over; empty where there are no such.
std::vector<std::uint8_t> local_gpus_within(const NodeSpec& node, std::span<const std::uint8_t> idle, std::size_t count,
                                            std::size_t most_domains);

// By islands alone, as if the node were one NUMA domain.
std::vector<std::uint8_t> linked_gpus(const NodeSpec& node, std::span<const std::uint8_t> idle, std::size_t count);

}  // namespace berth::sched
