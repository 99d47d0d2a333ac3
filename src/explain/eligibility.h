#pragma once
// Says why no node is eligible for a job: the first of pool, rules of pools, labels, taints and containers that leaves
// none.

#include <cstddef>
#include <string>

#include "explain/words.h"

namespace berth::explain {

// Returns a clause such as "no node has the label disk=nvme" or "pool serving has no nodes". Requires: no node that is
// known may hold a task of the group.
std::string no_eligible_node(const Words& words, const state::JobState& job, std::size_t group);

}  // namespace berth::explain
