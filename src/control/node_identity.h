#pragma once
// Which node a machine is. A node is its machine, whatever its name: a machine that registers under another name
// renames its node, and its tasks go on. Otherwise one GPU would be on two nodes and would be given to two jobs (P1).

#include "base/result.h"
#include "model/node.h"
#include "state/state.h"

namespace berth::control {

// Returns the node that is the described machine, or null if the machine is new. It is the node with the same machine
// id; else the node with the same name; else the node with one of its GPUs if that node was recorded without a machine
// id.
const state::NodeState* same_machine(const state::State& state, const NodeSpec& spec);

// Refuses a machine whose name or GPUs belong to another node. `known` is the result of same_machine(). A node that is
// lost keeps neither: its GPUs may be in another machine by now.
Result<void> check_identity(const state::State& state, const state::NodeState* known, const NodeSpec& spec);

}  // namespace berth::control
