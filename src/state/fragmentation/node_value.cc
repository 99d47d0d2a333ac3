#include "state/fragmentation/node_value.h"

#include <algorithm>
#include <bit>
#include <set>

#include "base/check.h"
#include "base/checked.h"
#include "base/random.h"

namespace berth::state::fragmentation {
namespace {

constexpr std::uint64_t kFutureSeed = 12345;

bool allowed(const Request& request, std::uint32_t model) {
  return request.gpus == 0 || ((request.models >> model) & 1U) != 0;
}

// A node that is filled by one future. Requires the free GPUs in ascending order, which it keeps: whole GPUs are the
// last.
class Filling {
 public:
  explicit Filling(const NodeFree& node)
      : cpu_milli_(node.cpu_milli), free_(node.free), end_(node.gpus), whole_(node.whole_free()) {}

  std::int64_t cpu_milli() const { return cpu_milli_; }
  // Returns the most milli-GPUs that one request can still have: whole GPUs, or the largest part of one if none is
  // whole.
  std::int64_t room() const { return whole_ > 0 ? std::int64_t{whole_} * kWholeGpu : end_ > 0 ? free_[end_ - 1] : 0; }

  // Places the request. Requires that it fits: its CPU, and its milli-GPUs within room().
  void take(const Request& request) {
    cpu_milli_ -= request.cpu_milli;
    if (request.is_share()) {
      take_share(request.milli);
    } else {
      whole_ -= request.gpus;
      end_ -= static_cast<std::uint32_t>(request.gpus);
    }
  }

 private:
  void take_share(std::int32_t milli) {
    std::uint32_t tightest = 0;
    while (free_[tightest] < milli) ++tightest;
    const std::int32_t rest = free_[tightest] - milli;
    if (free_[tightest] == kWholeGpu) --whole_;
    for (; tightest > 0 && free_[tightest - 1] > rest; --tightest) free_[tightest] = free_[tightest - 1];
    free_[tightest] = rest;
  }

  std::int64_t cpu_milli_;
  std::array<std::int32_t, kMaxGpusPerNode> free_;
  std::uint32_t end_;   // GPUs at and after it were taken as a whole
  std::int32_t whole_;  // number of whole GPUs, the last ones before end_
};

// Returns how many of the sorted amounts are at most `most`.
std::size_t count_within(std::span<const std::int64_t> sorted, std::int64_t most) {
  return static_cast<std::size_t>(std::upper_bound(sorted.begin(), sorted.end(), most) - sorted.begin());
}

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

Futures futures_for(const Mix& mix, std::uint32_t model) {
  const auto groups = mix.groups();
  std::vector<std::int64_t> up_to;  // cumulative weights
  std::int64_t total = 0;
  for (const auto& group : groups) up_to.push_back(total += allowed(group.request, model) ? group.weight : 0);
  Futures futures;
  if (total == 0) return futures;
  std::vector<std::array<std::uint64_t, kFutures>> positions(groups.size());  // by group, a bit for each position
  Random random(kFutureSeed);
  for (std::size_t drawn = 0; drawn < kFutures * kFutureLength; ++drawn) {
    // The random fraction is drawn first and scaled then, so that it does not depend on the weights.
    const auto point = static_cast<std::int64_t>((Uint128{random.next()} * static_cast<std::uint64_t>(total)) >> 64U);
    const auto group = static_cast<std::size_t>(std::upper_bound(up_to.begin(), up_to.end(), point) - up_to.begin());
    futures.groups.push_back(static_cast<std::uint16_t>(group));
    const auto position = std::uint64_t{1} << (drawn % kFutureLength);
    positions[group][drawn / kFutureLength] |= position;
    if (groups[group].request.gpus > 0) futures.ask_gpus[drawn / kFutureLength] |= position;
  }
  const auto bounds_by = [&](auto amount_of) {
    std::set<std::int64_t> amounts;
    for (const auto& group : groups) amounts.insert(amount_of(group.request));
    Futures::Bounds bounds{.amounts = {amounts.begin(), amounts.end()}, .within = {}};
    for (std::size_t future = 0; future < kFutures; ++future) {
      bounds.within.push_back(0);
      for (const auto amount : amounts) {
        bounds.within.push_back(bounds.within.back());
        for (std::size_t group = 0; group < groups.size(); ++group) {
          if (amount_of(groups[group].request) == amount) bounds.within.back() |= positions[group][future];
        }
      }
    }
    return bounds;
  };
  futures.sizes = bounds_by([](const Request& request) { return request.total_milli(); });
  futures.cpus = bounds_by([](const Request& request) { return request.cpu_milli; });
  return futures;
}

std::int64_t expected_fill(const NodeFree& node, const Mix& mix, const Futures& futures) {
  if (futures.groups.empty()) return 0;
  const auto groups = mix.groups();
  const std::span sizes(futures.sizes.amounts);
  const std::span cpus(futures.cpus.amounts);
  const Filling empty(node);
  const std::size_t sizes_at_first = count_within(sizes, empty.room());
  const std::size_t cpus_at_first = count_within(cpus, empty.cpu_milli());
  std::int64_t sum = 0;
  for (std::size_t future = 0; future < kFutures; ++future) {
    const auto sequence = std::span(futures.groups).subspan(future * kFutureLength, kFutureLength);
    const auto within_size = futures.sizes.of(future);
    const auto within_cpu = futures.cpus.of(future);
    Filling filling = empty;
    std::size_t size = sizes_at_first;
    std::size_t cpu = cpus_at_first;
    std::uint64_t left = within_size[size] & within_cpu[cpu];  // what is not placed yet and fits
    while ((left & futures.ask_gpus[future]) != 0) {
      const Request& request = groups[sequence[static_cast<std::size_t>(std::countr_zero(left))]].request;
      filling.take(request);
      sum += request.total_milli();
      const auto room = filling.room();
      while (size > 0 && sizes[size - 1] > room) --size;
      if (cpu > 0 && cpus[cpu - 1] > filling.cpu_milli()) cpu = count_within(cpus.first(cpu - 1), filling.cpu_milli());
      left &= (left - 1) & within_size[size] & within_cpu[cpu];
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
