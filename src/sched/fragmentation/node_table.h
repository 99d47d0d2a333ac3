#pragma once
// Remembers what the score needs of each distinct node state: nodes that are alike are computed once, and again only
// when the mix changes. Nothing here influences a decision: every value is a pure function of node, mix and fleet.

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "sched/fragmentation/mix.h"
#include "sched/fragmentation/node_value.h"
#include "sched/fragmentation/shape.h"

namespace berth::sched::fragmentation {

class NodeTable {
 public:
  using Id = std::uint32_t;

  // A way to put a request on a node: which GPU a share is put on, by its free milli, and what the node is then.
  struct Option {
    std::int32_t gpu_free = 0;
    Id after = 0;
  };

  explicit NodeTable(Mix mix) : mix_(std::move(mix)) {}

  const Mix& mix() const { return mix_; }
  // Learns from an arrival. True when the groups changed: whoever keeps a FleetSummary then sums it up anew.
  bool observe(const Request& request);

  Id id_of(const NodeFree& node);
  const NodeFree& node(Id id) const { return entries_[id].node; }
  std::span<const std::int64_t> slots_of(Id id);
  // Empty where the request does not fit, one option for whole GPUs, one per distinct fitting GPU for a share,
  // ascending.
  const std::vector<Option>& options(Id id, const Request& request);
  std::int64_t value(Id id, std::span<const std::int64_t> prices);

 private:
  struct Entry {
    NodeFree node;
    std::uint32_t mix_version = 0;  // of slots and fill
    std::vector<std::int64_t> slots;
    std::int64_t fill = 0;
    std::map<Request, std::vector<Option>> options;
  };

  Entry& current(Id id);
  std::span<const std::uint16_t> futures(std::uint32_t model);

  Mix mix_;
  std::uint32_t mix_version_ = 1;
  std::vector<Entry> entries_;
  std::map<NodeFree, Id> ids_;
  std::map<std::uint32_t, std::vector<std::uint16_t>> futures_;  // per model, of the mix as it is
};

}  // namespace berth::sched::fragmentation
