#pragma once
// NodeTable: a cache of what the score needs for each distinct node state. Nodes with equal free resources are computed
// once, and again only when the mix changes. The cache does not influence a decision: every value is a pure function of
// node, mix and fleet.

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

  // One way to place a request on a node: the free milli of the GPU that a share uses, and the node state after it.
  struct Option {
    std::int32_t gpu_free = 0;
    Id after = 0;
  };

  explicit NodeTable(Mix mix) : mix_(std::move(mix)) {}

  const Mix& mix() const { return mix_; }
  // Adds requests to the mix. Returns true if its groups changed; the caller must then compute its FleetSummary again.
  bool observe(const Request& request, std::int64_t times = 1);
  bool set_node_gpus(std::int32_t node_gpus);

  Id id_of(const NodeFree& node);
  RequestId id_of(const Request& request);
  const NodeFree& node(Id id) const { return entries_[id].node; }
  std::size_t size() const { return entries_.size() + afters_.size() / 8 + requests_.size(); }
  // Returns what the node state offers to the groups of the mix. The span is valid until the next call that asks what a
  // state offers or is worth.
  std::span<const Offer> offers_of(Id id);
  std::int64_t unusable_of(Id id);
  // Returns the options for the request on the node state: none if it does not fit, one for whole GPUs, and for a share
  // one per distinct free amount that fits, ascending. The span is valid until the next call.
  std::span<const Option> options(Id id, RequestId request);
  // Returns the node state after the request. `cpu_rest` is the CPU that the node has beyond whole units.
  Id state_after(Id id, RequestId request, std::int32_t gpu_free, std::int64_t cpu_rest);
  std::int64_t value(Id id, std::span<const std::int64_t> prices);

 private:
  struct Entry {
    NodeFree node;
    // By request: 0 if not computed yet, else 1 + the index in option_lists_.
    std::vector<std::uint32_t> options;
  };
  // The values of a node state for the current mix. They are stored apart from the entries, so that several fit into a
  // cache line.
  struct Worth {
    std::uint32_t mix_version = 0;
    std::uint32_t first_offer = 0;  // index in offers_
    std::uint16_t offers = 0;
    bool filled = false;  // `fill` is computed
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
  const Futures& futures(std::uint32_t model);

  Mix mix_;
  std::uint32_t mix_version_ = 1;
  std::vector<Entry> entries_;
  std::vector<Worth> worths_;  // by state id
  std::vector<Offer> offers_;  // of all states used since the mix changed, one after the other
  // allowed: looked up by key, never walked
  std::unordered_map<NodeFree, Id, Hash> ids_;
  NextStates afters_;  // key: state, request, free milli of the GPU, and whether the CPU rest saves a unit
  std::vector<Request> requests_;
  std::map<Request, RequestId> request_ids_;
  std::vector<std::vector<Option>> option_lists_;
  std::map<std::uint32_t, Futures> futures_;  // by GPU model, for the current mix
};

}  // namespace berth::state::fragmentation
