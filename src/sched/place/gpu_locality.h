#pragma once
// GPU locality: which of a node's idle GPUs a task gets. They should be near each other, and the rest should stay near
// each other.
//
// 1. If an NVLink island has enough idle GPUs, all come from the one with the fewest idle. Within it rule 2 holds.
// 2. Otherwise: if a NUMA domain has enough, all come from the one with the fewest idle. If none has, from as few NUMA
//    domains as possible.
// 3. Within a NUMA domain, islands are chosen in the same way. Of equal choices the first on the node is taken.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/node.h"

namespace berth::sched {

// Returns `count` GPUs of `idle`, both in the order of the node. Requires that `idle` has as many.
std::vector<std::uint8_t> local_gpus(const NodeSpec& node, std::span<const std::uint8_t> idle, std::size_t count);

// Returns the same from at most `most_domains` NUMA domains; empty if that is not possible. Rule 1 is dropped if it
// would need more domains.
std::vector<std::uint8_t> local_gpus_within(const NodeSpec& node, std::span<const std::uint8_t> idle, std::size_t count,
                                            std::size_t most_domains);

// Returns GPUs chosen by islands alone, as if the node were one NUMA domain.
std::vector<std::uint8_t> linked_gpus(const NodeSpec& node, std::span<const std::uint8_t> idle, std::size_t count);

}  // namespace berth::sched
