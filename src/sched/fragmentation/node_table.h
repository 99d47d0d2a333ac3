#pragma once
// Remembers what the score needs of each distinct node state: nodes that are
// alike are computed once, and again only when the mix changes. Nothing here
// influences a decision: every value is a pure function of node, mix and fleet.

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
  using RequestId = std::uint32_t;

  // A way to put a request on a node: which GPU a share is put on, by its free
  // milli, and what the node is then.
  struct Option {
    std::int32_t gpu_free = 0;
    Id after = 0;
  };

  explicit NodeTable(Mix mix) : mix_(std::move(mix)) {}

  const Mix& mix() const { return mix_; }
  // Learns from an arrival. True when the groups changed: whoever keeps a
  // FleetSummary then sums it up anew.
  bool observe(const Request& request);

  Id id_of(const NodeFree& node);
  RequestId id_of(const Request& request);
  const NodeFree& node(Id id) const { return entries_[id].node; }
  std::span<const std::int64_t> slots_of(Id id);
  // Empty where the request does not fit, one option for whole GPUs, one per
  // distinct fitting GPU for a share, ascending. The span is good until the
  // next call.
  std::span<const Option> options(Id id, RequestId request);
  std::int64_t value(Id id, std::span<const std::int64_t> prices);

 private:
  struct Entry {
    NodeFree node;
    std::uint32_t mix_version = 0;  // of slots and fill
    std::vector<std::int64_t> slots;
    std::int64_t fill = 0;
    std::vector<std::uint32_t> options;  // by request: 0 not asked yet, else 1 +
                                         // an index into option_lists_
  };

  Entry& current(Id id);
  std::vector<Option> find_options(const NodeFree& before, const Request& request);
  std::span<const std::uint16_t> futures(std::uint32_t model);

  Mix mix_;
  std::uint32_t mix_version_ = 1;
  std::vector<Entry> entries_;
  std::map<NodeFree, Id> ids_;
  std::vector<Request> requests_;
  std::map<Request, RequestId> request_ids_;
  std::vector<std::vector<Option>> option_lists_;
  std::map<std::uint32_t, std::vector<std::uint16_t>> futures_;  // per model, of the mix as it is
};

}  // namespace berth::sched::fragmentation
