#pragma once
// Which node has a name, is a machine, and has a GPU. A machine and a GPU are each on one node; of several nodes that
// name the same one, the node that is not lost has it. Derived from the specs of the nodes, so it is no state of its
// own.

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "model/ids.h"
#include "model/node.h"

namespace berth::state {

class NodeIdentities {
 public:
  // Enters all that the spec names. `is_lost(NodeId)` tells whether an entry of another node may be replaced.
  template <class IsLost>
  void enter(NodeId id, const NodeSpec& spec, IsLost&& is_lost) {
    names_.insert_or_assign(spec.name, id);
    const auto claim = [&](Index& index, const std::string& what) {
      if (what.empty()) return;
      const auto [entry, fresh] = index.try_emplace(what, id);
      if (!fresh && is_lost(entry->second)) entry->second = id;
    };
    claim(machines_, spec.machine);
    for (const Gpu& gpu : spec.gpus) claim(gpus_, gpu.uuid);
  }
  // Removes the entries of the node. Requires the spec by which it was entered last.
  void forget(NodeId id, const NodeSpec& spec);

  std::optional<NodeId> named(std::string_view name) const { return find(names_, name); }
  std::optional<NodeId> of_machine(std::string_view machine) const { return find(machines_, machine); }
  std::optional<NodeId> of_gpu(std::string_view uuid) const { return find(gpus_, uuid); }

 private:
  using Index = std::map<std::string, NodeId, std::less<>>;
  static std::optional<NodeId> find(const Index& index, std::string_view what);

  Index names_;
  Index machines_;
  Index gpus_;
};

}  // namespace berth::state
