#pragma once
// berth's placement score against fragmentation: pure functions, integers only. docs/lab/fragmentation.md derives it.
//
//   value(node) = expected_fill(node) + kScarcityPercent % of the sum over groups g of price(g) * slots(node, g)
//
// and a request goes where value(node after it) - value(node) is greatest. The first term looks at the node alone: how
// many milli-GPU would a future made of the mix still put on it? It sees what FGD's gradient cannot: which remainders
// of GPUs and CPU go together. The second looks at the fleet: a slot of a kind that few nodes still offer (whole nodes,
// a GPU model that requests are bound to) costs more the scarcer it is for the demand to come.

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "state/fragmentation/mix.h"
#include "state/fragmentation/shape.h"

namespace berth::state::fragmentation {

inline constexpr std::size_t kFutures = 24;       // sampled futures per node
inline constexpr std::size_t kFutureLength = 60;  // requests in each
inline constexpr std::int64_t kScarcityPercent = 20;
inline constexpr std::int64_t kPriceScale = 1024;  // one milli-GPU, in a price

// F(n) of the FGD paper (section 4.1), times the mix's total weight: idle milli that a request drawn from the mix could
// not use. All of it where the request cannot run here (or wants no GPU), else what lies on GPUs with too little left.
std::int64_t unusable_milli(const NodeFree& node, const Mix& mix);

// How many slots a node has for one group of the mix that asks for GPUs; groups for which it has none are left out, as
// nearly all are on a node that is nearly full. Slots for CPU alone have no price.
struct Offer {
  std::uint16_t group = 0;
  std::uint16_t slots = 0;  // at most one for each milli of its GPUs
  bool operator==(const Offer&) const = default;
};
static_assert(kMaxGpusPerNode * kWholeGpu <= std::numeric_limits<std::uint16_t>::max());

// Appends what the node offers, in the order of the groups.
void append_offers(const NodeFree& node, const Mix& mix, std::vector<Offer>& offers);

// What the whole fleet still offers, kept current by adding and removing nodes.
struct FleetSummary {
  std::int64_t idle_milli = 0;
  std::vector<std::int64_t> slots;  // per group of the mix

  // Precondition: there is one of `slots` for each group.
  void add(const NodeFree& node, std::span<const Offer> offers, std::int64_t times);
};

// Per group, in units of 1/kPriceScale milli-GPU a slot: the group's milli times the square of its scarcity. Scarcity
// is the demand still to come (the requests of this group among as many as would ask for all that is idle) over the
// slots on offer, at most 1.
std::vector<std::int64_t> scarcity_prices(const FleetSummary& fleet, const Mix& mix);

// The futures of one GPU model: indexes into the mix's groups, kFutures runs of kFutureLength, drawn by weight among
// the groups that may run on the model. The same numbers are behind every draw, so that nodes are compared on like
// futures.
std::vector<std::uint16_t> futures_for(const Mix& mix, std::uint32_t model);

// The sum over the futures of the milli-GPU that they put on the node, request by request, each on the tightest GPU
// that holds it and left out if it does not fit. kFutures times the expected fill.
std::int64_t expected_fill(NodeFree node, const Mix& mix, std::span<const std::uint16_t> futures);

// The value above, in units of 1/(kFutures * kPriceScale) milli-GPU.
std::int64_t node_value(std::int64_t fill, std::span<const Offer> offers, std::span<const std::int64_t> prices);

}  // namespace berth::state::fragmentation
