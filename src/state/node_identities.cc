#include "state/node_identities.h"

namespace berth::state {

std::optional<NodeId> NodeIdentities::find(const Index& index, std::string_view what) {
  const auto found = index.find(what);
  return found == index.end() ? std::nullopt : std::optional(found->second);
}

void NodeIdentities::forget(NodeId id, const NodeSpec& spec) {
  const auto drop = [&](Index& index, const std::string& what) {
    const auto found = index.find(what);
    if (found != index.end() && found->second == id) index.erase(found);
  };
  drop(names_, spec.name);
  drop(machines_, spec.machine);
  for (const Gpu& gpu : spec.gpus) drop(gpus_, gpu.uuid);
}

}  // namespace berth::state
