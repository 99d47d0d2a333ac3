#pragma once
// NUMA policies: from how many domains of a node the GPUs of one task may come. The meaning is that of Kubernetes'
// Topology Manager, for GPUs (docs/decisions/0015): CPU and memory are not counted by domain.
//
// How many domains an empty node would need is told from all GPUs of the model that the node has, healthy or not. So
// what a node refuses it takes only when more of its GPUs are idle, never because one of them fails.

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

// The policy of the group as far as it means anything: one GPU, or a share of one, satisfies all of them; but an
// exclusive task gets all GPUs of its node.
NumaPolicy numa_policy(const JobSpec& spec, const TaskGroup& group);

// From how many domains the GPUs of a task may come. `all`: how many of the model each domain has.
std::size_t most_domains(NumaPolicy policy, std::vector<std::size_t> all, std::size_t gpus);

// How many tasks of so many GPUs find them in that many domains; `idle`: in each. Exact for one domain, else never too
// few.
std::int64_t tasks_within(std::size_t most, std::vector<std::size_t> idle, std::size_t gpus);

// How many tasks of the ask find their whole GPUs among idle ones of one model on the node, bit g for GPU g; never too
// few.
std::int64_t tasks_on(const TaskRequirements& ask, const state::NodeState& node, std::uint32_t idle);
// The same on an empty node of the shape, among its GPUs of the model.
std::int64_t tasks_on(const TaskRequirements& ask, const state::NodeShape& shape, std::size_t model);

// Of the idle GPUs of one model, both in the order of the node, those that a task gets by its policy; empty where that
// refuses all choices. There are enough.
std::vector<std::uint8_t> gpus_by_policy(const TaskRequirements& ask, const state::NodeState& node,
                                         std::span<const std::uint8_t> idle);

// Whether a task that takes these GPUs keeps the policy: what an exclusive task takes beyond what it asks counts, too.
bool is_kept(const TaskRequirements& ask, const state::NodeState& node, std::span<const std::uint8_t> gpus);

}  // namespace berth::sched
