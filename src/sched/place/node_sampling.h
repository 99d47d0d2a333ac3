#pragma once
// Which nodes a request is scored on. Of each GPU model the few tightest that can take a task and the few loosest, no
// two alike: what the score of fragmentation prefers lies nearly always at one of the two ends, a node that it fills or
// one that it breaks up for good (docs/lab/fragmentation.md has the figures). So a decision costs as much on a large
// fleet as on a small one. Where the nodes are looked at that have the image of the task, one that has it stands beside
// each of them that has not, if there is one like it.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/ids.h"
#include "sched/place/node_fit.h"
#include "state/state.h"

namespace berth::sched {

inline constexpr std::size_t kScoredAtEachEnd = 12;  // per GPU model

// Nodes in ascending order, none of them in `without`, which is so ordered too. Nothing only where no other node can
// take a task. `scored` counts groups and nodes looked at.
std::vector<NodeId> nodes_to_score(const state::State& state, const TaskRequirements& ask,
                                   std::span<const NodeId> without, std::uint64_t& scored);

// Another node with the same GPUs and as much CPU left that can take a task, or nothing: the next after this one, but
// first one that has the image, where this one has it.
std::optional<NodeId> next_alike(const state::State& state, const TaskRequirements& ask, NodeId node,
                                 std::span<const NodeId> without);

}  // namespace berth::sched
