#include "control/node_identity.h"

#include <string>

#include "base/planted.h"

namespace berth::control {

namespace {

using state::NodeState;
using state::State;

bool is_lost(const NodeState& node) { return node.status == NodeStatus::kLost; }

std::string with_status(const NodeState& node) {
  return "node '" + node.spec.name + "', which is " + std::string(name_of(node.status));
}

// Returns what an operator can do so that the node gives up its GPUs.
std::string way_out(const NodeState& node) {
  return node.status == NodeStatus::kReady
             ? "take the GPU out of one of them, or shut '" + node.spec.name + "' down and fence it"
             : "if '" + node.spec.name + "' is off for good, fence it (berth fence " + node.spec.name + " --yes)";
}

}  // namespace

const NodeState* same_machine(const State& state, const NodeSpec& spec) {
  const NodeState* named = state.node_named(spec.name);
  if (planted(Bug::kPhantomNode)) return named;
  if (const NodeState* known = state.node_of_machine(spec.machine)) return known;
  if (named != nullptr || spec.machine.empty()) return named;
  for (const Gpu& gpu : spec.gpus) {
    const NodeState* owner = state.node_of_gpu(gpu.uuid);
    if (owner != nullptr && !is_lost(*owner) && owner->spec.machine.empty()) return owner;
  }
  return nullptr;
}

Result<void> check_identity(const State& state, const NodeState* known, const NodeSpec& spec) {
  if (planted(Bug::kPhantomNode)) return {};
  const NodeState* named = state.node_named(spec.name);
  const bool other_machine =
      named != nullptr && !spec.machine.empty() && !named->spec.machine.empty() && named->spec.machine != spec.machine;
  if (named != nullptr && !is_lost(*named) && (named != known || other_machine)) {
    return conflict("another machine has the name of " + with_status(*named) + "; give this machine another name, or " +
                    "fence '" + named->spec.name + "' if it is off for good");
  }
  for (const Gpu& gpu : spec.gpus) {
    const NodeState* owner = state.node_of_gpu(gpu.uuid);
    if (owner == nullptr || owner == known || is_lost(*owner)) continue;
    return conflict("node '" + spec.name + "' has GPU " + gpu.uuid + ", and so has " + with_status(*owner) + ": " +
                    way_out(*owner));
  }
  return {};
}

}  // namespace berth::control
