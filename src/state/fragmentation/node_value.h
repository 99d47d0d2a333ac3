#pragma once
// The placement score against fragmentation: pure functions on integers. docs/lab/fragmentation.md derives it.
//
//   value(node) = expected_fill(node) + kScarcityPercent % of the sum over groups g of price(g) * slots(node, g)
//
// A request goes where value(node after it) - value(node) is greatest. The first term looks at one node: how many
// milli-GPUs would the mix of future requests still use on it? FGD's gradient cannot see this: which remainders of GPUs
// and CPU fit together. The second term looks at the fleet: a slot that few nodes still offer (a whole node, a required
// GPU model) costs more, the scarcer it is for the expected demand.

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "state/fragmentation/mix.h"
#include "state/fragmentation/shape.h"

namespace berth::state::fragmentation {

inline constexpr std::size_t kFutures = 24;       // number of sampled request sequences (futures) per node
inline constexpr std::size_t kFutureLength = 60;  // requests in each future
inline constexpr std::int64_t kScarcityPercent = 20;
inline constexpr std::int64_t kPriceScale = 1024;  // the price of one milli-GPU

// Returns F(n) of the FGD paper (section 4.1) times the total weight of the mix: the idle milli-GPUs that a request
// drawn from the mix could not use. That is all of them if the request cannot run on this node or asks for no GPU.
// Otherwise it is what is left on GPUs with too little for the request.
std::int64_t unusable_milli(const NodeFree& node, const Mix& mix);

// How many times one group of the mix fits on a node. Groups that ask for no GPU have no offer, because CPU has no
// price. Groups that do not fit have none either; on a nearly full node these are most.
struct Offer {
  std::uint16_t group = 0;
  std::uint16_t slots = 0;  // at most one per milli-GPU of the node
  bool operator==(const Offer&) const = default;
};
static_assert(kMaxGpusPerNode * kWholeGpu <= std::numeric_limits<std::uint16_t>::max());

// Appends the offers of the node, in the order of the groups.
void append_offers(const NodeFree& node, const Mix& mix, std::vector<Offer>& offers);

// What the whole fleet still offers; nodes are added and removed one by one.
struct FleetSummary {
  std::int64_t idle_milli = 0;
  std::vector<std::int64_t> slots;  // by group of the mix

  // Adds the node `times` times; -1 removes it. Requires that `slots` has one entry for each group.
  void add(const NodeFree& node, std::span<const Offer> offers, std::int64_t times);
};

// Returns the price of one slot for each group, in units of 1/kPriceScale milli-GPU: the group's milli-GPUs times the
// square of its scarcity. Scarcity is the expected demand of the group over the slots on offer, at most 1. The expected
// demand is its part of the requests that would together fill all idle GPUs.
std::vector<std::int64_t> scarcity_prices(const FleetSummary& fleet, const Mix& mix);

// The futures of one GPU model, and what tells at once which of their requests a node has no room for. All lists are
// empty if no group of the mix may run on the model. A set of positions in a future is a bit for each of them.
struct Futures {
  struct Bounds {
    std::vector<std::int64_t> amounts;  // that the groups ask for, ascending, each once
    // For each future, and n from 0 to the number of amounts: the positions of requests for one of the n least amounts.
    std::vector<std::uint64_t> within;

    std::span<const std::uint64_t> of(std::size_t future) const {
      return std::span(within).subspan(future * (amounts.size() + 1), amounts.size() + 1);
    }
    bool operator==(const Bounds&) const = default;
  };

  std::vector<std::uint16_t> groups;               // kFutures sequences of kFutureLength indexes into the mix's groups
  std::array<std::uint64_t, kFutures> ask_gpus{};  // positions of requests for GPUs
  Bounds sizes;                                    // milli-GPUs
  Bounds cpus;
  bool operator==(const Futures&) const = default;
};
static_assert(kFutureLength <= 64);

// Returns the futures of one GPU model. They are drawn by weight among the groups that may run on the model. All draws
// use the same random numbers, so that nodes are compared on equal futures.
Futures futures_for(const Mix& mix, std::uint32_t model);

// Returns the milli-GPUs that the futures use on the node, summed over all futures (kFutures times the expected fill).
// Requests are placed in order, each on the tightest GPU that holds it; a request that does not fit is skipped, with
// all later ones of its group. Requires the free GPUs in ascending order.
std::int64_t expected_fill(const NodeFree& node, const Mix& mix, const Futures& futures);

// Returns the value defined above, in units of 1/(kFutures * kPriceScale) milli-GPU.
std::int64_t node_value(std::int64_t fill, std::span<const Offer> offers, std::span<const std::int64_t> prices);

}  // namespace berth::state::fragmentation
