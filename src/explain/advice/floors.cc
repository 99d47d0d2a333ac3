// Advice by the meter: guarantees that have not been used for days.

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "base/checked.h"
#include "explain/advice/rules.h"
#include "model/document/quantity.h"
#include "model/queue_path.h"

namespace berth::explain {

using state::QueueState;
using state::State;

namespace {

constexpr std::size_t kFewestDays = 7;
constexpr std::int64_t kUnusedPercent = 25;  // of the guarantee, on its busiest day
constexpr std::int64_t kHoursPerMonth = 730;

bool guarantees_gpus(const QueueState& queue) {
  return queue.configured.states(kDimGpu) && queue.configured.amounts[kDimGpu] > 0;
}

// The innermost guarantee: what is given back there leaves the queues above as they are.
bool is_innermost(const State& state, const QueueState& queue) {
  return std::none_of(queue.children.begin(), queue.children.end(),
                      [&](QueueId child) { return guarantees_gpus(state.queue(child)); });
}

// By day, of all jobs of the queue and below it.
std::vector<std::int64_t> use_below(const QueueState& queue, const std::vector<FloorUse>& floor_use, std::size_t days) {
  std::vector<std::int64_t> sums(days);
  for (const FloorUse& one : floor_use) {
    if (!is_at_or_below(one.queue, queue.path)) continue;
    for (std::size_t d = 0; d < days; ++d) sums[d] += one.milli_by_day[d];
  }
  return sums;
}

// The lowest floor price of the GPU models of the cluster now; nothing without prices.
std::optional<std::int64_t> floor_price_micro(const State& state, Timestamp now) {
  const PricePeriod* period = state.price_version() == 0 ? nullptr : state.prices().at(now);
  std::optional<std::int64_t> lowest;
  for (std::size_t m = 0; period != nullptr && m < state.gpu_models().size(); ++m) {
    const GpuPrice* price = period->gpu(state.gpu_models()[m].name);
    if (price != nullptr) lowest = std::min(lowest.value_or(price->floor_micro), price->floor_micro);
  }
  return lowest;
}

std::string worth_of(const State& state, Timestamp now, std::int64_t gpus) {
  const auto price = floor_price_micro(state, now);
  if (!price || *price == 0)
    return "frees " + std::to_string(gpus * kHoursPerMonth) + " GPU-hours a month for other queues";
  const std::int64_t micro = checked_multiply(checked_multiply(gpus, kHoursPerMonth), *price);
  const std::string whole = std::to_string((micro + kMicro / 2) / kMicro);
  return "saves " + whole + " " + state.prices().currency + " a month at the floor price, less what lending them earns";
}

}  // namespace

void advise_on_floors(Survey& survey, const std::vector<FloorUse>& floor_use) {
  const State& state = survey.state();
  const std::size_t days = floor_use.empty() ? 0 : floor_use.front().milli_by_day.size();
  if (days < kFewestDays) return;
  for (const QueueState& queue : state.queues()) {
    if (queue.removed || queue.id == state.root() || !guarantees_gpus(queue) || !is_innermost(state, queue)) continue;
    if (!survey.look(floor_use.size())) return;
    const std::int64_t held = queue.configured.amounts[kDimGpu];
    const std::vector<std::int64_t> used = use_below(queue, floor_use, days);
    const std::int64_t busiest = *std::max_element(used.begin(), used.end());
    const std::int64_t mean =
        std::accumulate(used.begin(), used.end(), std::int64_t{0}) / static_cast<std::int64_t>(days);
    const std::int64_t spare = (held - busiest) / kMilli;  // whole GPUs
    if (spare < 1 || Int128{held - busiest} * 100 < Int128{held} * kUnusedPercent) continue;
    const std::string kept = document::milli_text(held - spare * kMilli);
    survey.say({AdviceCode::kFloorUnused, AdviceSeverity::kNote, AdviceAbout::kQueue, queue.path,
                "It is guaranteed " + document::milli_text(held) + " GPUs, of which its jobs used " +
                    tenths_words(mean) + " in the mean of the last " + std::to_string(days) + " days, and " +
                    tenths_words(busiest) + " on the busiest of them.",
                "Giving back " + std::to_string(spare) + " (`berth queue set " + queue.path +
                    " guaranteed.gpus=" + kept + "`) " + worth_of(state, survey.now(), spare) + "."},
               spare);
  }
}

}  // namespace berth::explain
