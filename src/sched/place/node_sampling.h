#pragma once
// Node sampling: which nodes a request is scored on. For each GPU model these are the few tightest nodes that can take
// a task and the few loosest, no two of them alike. The node that the fragmentation score prefers is nearly always at
// one of the two ends: a node that the task fills, or one that it breaks up for good (figures in
// docs/lab/fragmentation.md). So a decision costs as much on a large fleet as on a small one. If images are looked at,
// each sampled node without the image is joined by a node like it that has the image, if there is one.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/ids.h"
#include "sched/place/node_fit.h"
#include "state/state.h"

namespace berth::sched {

inline constexpr std::size_t kScoredAtEachEnd = 12;  // per GPU model

// Returns the nodes to score in ascending order, without those in `without`, which is ascending too. Returns none only
// if no other node can take a task. `scored` counts the groups and nodes looked at.
std::vector<NodeId> nodes_to_score(const state::State& state, const TaskRequirements& ask,
                                   std::span<const NodeId> without, std::uint64_t& scored);

// Returns another node with the same GPUs and as much CPU left that can take a task: the next one after `node`. If
// `node` has the image, nodes with the image are tried first. Nothing if there is none.
std::optional<NodeId> next_alike(const state::State& state, const TaskRequirements& ask, NodeId node,
                                 std::span<const NodeId> without);

}  // namespace berth::sched
