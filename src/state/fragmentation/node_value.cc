#include "state/fragmentation/node_value.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/checked.h"
#include "base/random.h"

namespace berth::state::fragmentation {
namespace {

constexpr std::uint64_t kFutureSeed = 12345;

bool allowed(const Request& request, std::uint32_t model) {
  return request.gpus == 0 || ((request.models >> model) & 1U) != 0;
}

// A node that is filled by one future. Its GPUs stay unsorted, because only the tightest GPU for a share is looked up.
class Filling {
 public:
  explicit Filling(const NodeFree& node) : node_(node) { find_largest(); }

  // Returns true if a GPU has at least `milli` free and the node has at least `cpu_milli` free.
  bool has_room(std::int32_t milli, std::int64_t cpu_milli) const {
    return largest_ >= milli && node_.cpu_milli >= cpu_milli;
  }

  // Places the request if it fits. Returns the milli-GPUs that it takes, else 0.
  std::int64_t take(const Request& request) {
    if (node_.cpu_milli < request.cpu_milli) return 0;
    if (request.gpus == 0) {
      node_.cpu_milli -= request.cpu_milli;
      return 0;
    }
    if (largest_ < request.milli) return 0;
    const bool taken = request.is_share() ? take_share(request.milli) : take_whole(request.gpus);
    if (!taken) return 0;
    node_.cpu_milli -= request.cpu_milli;
    find_largest();
    return request.total_milli();
  }

 private:
  bool take_share(std::int32_t milli) {
    std::size_t tightest = kMaxGpusPerNode;
    for (std::size_t gpu = 0; gpu < node_.gpus; ++gpu) {
      if (node_.free[gpu] < milli) continue;
      if (tightest == kMaxGpusPerNode || node_.free[gpu] < node_.free[tightest]) tightest = gpu;
    }
    if (tightest == kMaxGpusPerNode) return false;
    node_.free[tightest] -= milli;
    return true;
  }

  bool take_whole(std::int32_t gpus) {
    if (node_.whole_free() < gpus) return false;
    for (std::size_t gpu = 0; gpus > 0; ++gpu) {
      if (node_.free[gpu] != kWholeGpu) continue;
      node_.free[gpu] = 0;
      --gpus;
    }
    return true;
  }

  void find_largest() {
    largest_ = 0;
    for (const auto milli : node_.free_gpus()) largest_ = std::max(largest_, milli);
  }

  NodeFree node_;
  std::int32_t largest_ = 0;
};

std::int64_t unusable_milli_for(const NodeFree& node, const Request& request) {
  if (request.gpus == 0 || slots(node, request) == 0) return node.idle_milli();
  std::int64_t sum = 0;
  for (const auto milli : node.free_gpus()) sum += milli < request.milli ? milli : 0;
  return sum;
}

// Returns a * b / (c * d), rounded down. It uses 64 bits if they suffice, which is nearly always true and much cheaper.
Int128 quotient(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) {
  std::int64_t above = 0;
  std::int64_t below = 0;
  if (!__builtin_mul_overflow(a, b, &above) && !__builtin_mul_overflow(c, d, &below)) return above / below;
  return Int128{a} * b / (Int128{c} * d);
}

}  // namespace

std::int64_t unusable_milli(const NodeFree& node, const Mix& mix) {
  std::int64_t sum = 0;
  for (const auto& group : mix.groups()) {
    sum = checked_add(sum, checked_multiply(group.weight, unusable_milli_for(node, group.request)));
  }
  return sum;
}

void append_offers(const NodeFree& node, const Mix& mix, std::vector<Offer>& offers) {
  const auto groups = mix.groups();
  const std::int32_t whole_free = node.whole_free();
  for (std::size_t group = 0; group < groups.size(); ++group) {
    const Request& request = groups[group].request;
    if (request.gpus == 0 || node.cpu_milli < request.cpu_milli) continue;
    if (!request.is_share() && whole_free < request.gpus) continue;
    const std::int64_t count = slots(node, groups[group].request);
    if (count > 0) offers.push_back({static_cast<std::uint16_t>(group), static_cast<std::uint16_t>(count)});
  }
}

void FleetSummary::add(const NodeFree& node, std::span<const Offer> offers, std::int64_t times) {
  idle_milli += times * node.idle_milli();
  for (const Offer offer : offers) slots[offer.group] += times * offer.slots;
}

std::vector<std::int64_t> scarcity_prices(const FleetSummary& fleet, const Mix& mix) {
  const auto groups = mix.groups();
  std::vector<std::int64_t> prices(groups.size(), 0);
  if (mix.weighted_milli() == 0) return prices;
  BERTH_CHECK(fleet.slots.size() == groups.size());
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const auto offered = std::max<std::int64_t>(1, fleet.slots[i]);
    const auto capped = static_cast<std::int64_t>(std::min<Int128>(
        quotient(kPriceScale * fleet.idle_milli, groups[i].weight, mix.weighted_milli(), offered), kPriceScale));
    prices[i] = groups[i].request.total_milli() * capped * capped / kPriceScale;
  }
  return prices;
}

std::vector<std::uint16_t> futures_for(const Mix& mix, std::uint32_t model) {
  const auto groups = mix.groups();
  std::vector<std::int64_t> up_to;  // cumulative weights
  std::int64_t total = 0;
  for (const auto& group : groups) up_to.push_back(total += allowed(group.request, model) ? group.weight : 0);
  std::vector<std::uint16_t> futures;
  if (total == 0) return futures;
  Random random(kFutureSeed);
  for (std::size_t drawn = 0; drawn < kFutures * kFutureLength; ++drawn) {
    // The random fraction is drawn first and scaled then, so that it does not depend on the weights.
    const auto point = static_cast<std::int64_t>((Uint128{random.next()} * static_cast<std::uint64_t>(total)) >> 64U);
    const auto group = std::upper_bound(up_to.begin(), up_to.end(), point) - up_to.begin();
    futures.push_back(static_cast<std::uint16_t>(group));
  }
  return futures;
}

std::int64_t expected_fill(NodeFree node, const Mix& mix, std::span<const std::uint16_t> futures) {
  const auto groups = mix.groups();
  // What does not fit on the node as it is never fits later, so it is passed over without a look at the node. On a
  // nearly full node these are most of the requests.
  std::vector<std::uint8_t> fits(groups.size());
  const std::int32_t whole_free = node.whole_free();
  const Filling empty(node);
  std::int32_t least_milli = kWholeGpu;
  std::int64_t least_cpu = std::numeric_limits<std::int64_t>::max();
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const Request& request = groups[i].request;
    if (node.cpu_milli < request.cpu_milli) continue;
    if (request.is_share() ? !empty.has_room(request.milli, 0) : whole_free < request.gpus) continue;
    fits[i] = 1;
    if (request.gpus == 0) continue;
    least_milli = std::min(least_milli, request.milli);
    least_cpu = std::min(least_cpu, request.cpu_milli);
  }
  std::int64_t sum = 0;
  for (; !futures.empty(); futures = futures.subspan(kFutureLength)) {
    Filling filling(node);
    for (const std::uint16_t group : futures.first(kFutureLength)) {
      if (fits[group] == 0) continue;
      if (!filling.has_room(least_milli, least_cpu)) break;
      sum += filling.take(groups[group].request);
    }
  }
  return sum;
}

std::int64_t node_value(std::int64_t fill, std::span<const Offer> offers, std::span<const std::int64_t> prices) {
  std::int64_t scarce = 0;
#pragma GCC unroll 4
  for (const Offer offer : offers) scarce += prices[offer.group] * offer.slots;
  const auto futures = static_cast<std::int64_t>(kFutures);
  return fill * kPriceScale + futures * kScarcityPercent * scarce / 100;
}

}  // namespace berth::state::fragmentation
