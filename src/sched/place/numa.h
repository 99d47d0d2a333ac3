#pragma once
// NUMA policies: from how many NUMA domains of a node the GPUs of one task may come. The meaning is that of Kubernetes'
// Topology Manager, for GPUs only (docs/decisions/0015): CPU and memory are not counted by domain.
//
// How many domains a task would need on an empty node is computed from all GPUs of the model, healthy or not. So when a
// GPU fails, a node that refused a task does not begin to accept it. It accepts it only when more of its GPUs become
// idle.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/job.h"
#include "sched/place/node_fit.h"
#include "state/node_index.h"
#include "state/node_state.h"

namespace berth::sched {

constexpr bool is_strict(NumaPolicy policy) {
  return policy == NumaPolicy::kRestricted || policy == NumaPolicy::kSingleNumaNode;
}

// Returns the group's policy, or best effort where a policy changes nothing: a task with one GPU or a share satisfies
// every policy. An exclusive task keeps its policy, since it gets all GPUs of its node.
NumaPolicy numa_policy(const JobSpec& spec, const TaskGroup& group);

// Returns from how many domains the GPUs of a task may come. `all`: the number of GPUs of the model in each domain.
std::size_t most_domains(NumaPolicy policy, std::vector<std::size_t> all, std::size_t gpus);

// Returns how many tasks of `gpus` GPUs fit if each may use `most` domains; `idle`: the idle GPUs of each domain. Exact
// for one domain, otherwise never too low.
std::int64_t tasks_within(std::size_t most, std::vector<std::size_t> idle, std::size_t gpus);

// Returns how many tasks find their whole GPUs among the idle ones on the node (bit g: GPU g), which are of one model.
// Never too low.
std::int64_t tasks_on(const TaskRequirements& ask, const state::NodeState& node, std::uint32_t idle);
// The same on an empty node of the shape, for its GPUs of one model.
std::int64_t tasks_on(const TaskRequirements& ask, const state::NodeShape& shape, std::size_t model);

// Returns the GPUs that a task gets by its policy, out of `idle`: GPUs of one model in the order of the node, enough
// for the task. Empty if the policy refuses every choice.
std::vector<std::uint8_t> gpus_by_policy(const TaskRequirements& ask, const state::NodeState& node,
                                         std::span<const std::uint8_t> idle);

// Returns true if a task that takes these GPUs keeps its policy. The GPUs that an exclusive task gets beyond its
// request count too.
bool is_kept(const TaskRequirements& ask, const state::NodeState& node, std::span<const std::uint8_t> gpus);

}  // namespace berth::sched
