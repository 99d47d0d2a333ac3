#pragma once
// Remembers what the score needs of each distinct node state: nodes that are
// alike are computed once, and again only when the mix changes. Nothing here
// influences a decision: every value is a pure function of node, mix and fleet.

#include <cstdint>
#include <map>
#include <span>
// allowed: looked up by key, never walked
#include <unordered_map>
#include <vector>

#include "state/fragmentation/mix.h"
#include "state/fragmentation/next_states.h"
#include "state/fragmentation/node_value.h"
#include "state/fragmentation/shape.h"

namespace berth::state::fragmentation {

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
  bool observe(const Request& request, std::int64_t times = 1);
  bool set_node_gpus(std::int32_t node_gpus);

  Id id_of(const NodeFree& node);
  RequestId id_of(const Request& request);
  const NodeFree& node(Id id) const { return entries_[id].node; }
  std::size_t size() const { return entries_.size() + afters_.size() / 8 + requests_.size(); }
  // What it offers to the mix as it is. The span is good until the next call that asks what a state offers or is worth.
  std::span<const Offer> offers_of(Id id);
  std::int64_t unusable_of(Id id);
  // Empty where the request does not fit, one option for whole GPUs, one per
  // distinct fitting GPU for a share, ascending. The span is good until the
  // next call.
  std::span<const Option> options(Id id, RequestId request);
  // What a node in state `id`, with `cpu_rest` beyond its whole units of CPU, is after the request.
  Id state_after(Id id, RequestId request, std::int32_t gpu_free, std::int64_t cpu_rest);
  std::int64_t value(Id id, std::span<const std::int64_t> prices);

 private:
  struct Entry {
    NodeFree node;
    std::vector<std::uint32_t> options;  // by request: 0 not asked yet, else 1 +
                                         // an index into option_lists_
  };
  // What a state is to the mix of this version; kept apart from the entries, so that several lie in a cache line.
  struct Worth {
    std::uint32_t mix_version = 0;
    std::uint32_t first_offer = 0;  // in offers_
    std::uint16_t offers = 0;
    bool filled = false;  // `fill` has been worked out
    std::int64_t fill = 0;
    std::int64_t unusable = 0;
  };

  struct Hash {
    std::size_t operator()(const NodeFree& node) const;
  };

  void mix_changed();
  Worth& current(Id id);
  std::span<const Offer> offers_of(const Worth& worth) const {
    return std::span(offers_).subspan(worth.first_offer, worth.offers);
  }
  std::vector<Option> find_options(const NodeFree& before, const Request& request);
  std::span<const std::uint16_t> futures(std::uint32_t model);

  Mix mix_;
  std::uint32_t mix_version_ = 1;
  std::vector<Entry> entries_;
  std::vector<Worth> worths_;  // by Id
  std::vector<Offer> offers_;  // of the states that have been asked for since the mix changed, one after the other
  // allowed: looked up by key, never walked
  std::unordered_map<NodeFree, Id, Hash> ids_;
  NextStates afters_;  // by state, request, free milli of the GPU and whether the rest of the CPU saves a unit
  std::vector<Request> requests_;
  std::map<Request, RequestId> request_ids_;
  std::vector<std::vector<Option>> option_lists_;
  std::map<std::uint32_t, std::vector<std::uint16_t>> futures_;  // per model, of the mix as it is
};

}  // namespace berth::state::fragmentation
