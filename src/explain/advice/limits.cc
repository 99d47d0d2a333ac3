// Advice about limits that are too high: guarantees that the fleet cannot back, and a max that cannot be reached.

#include <algorithm>
#include <optional>
#include <tuple>

#include "explain/advice/rules.h"
#include "explain/capacity/guarantee_coverage.h"
#include "explain/text_list.h"
#include "model/document/quantity.h"

namespace berth::explain {

using state::NodeState;
using state::QueueState;
using state::State;

namespace {

Amounts amounts_of_all(const NodeState& node) {
  Amounts all;
  all[kDimCpu] = node.spec.cpu_milli;
  all[kDimMemory] = node.spec.memory_mib;
  for (const state::GpuSlot& gpu : node.gpus) {
    all[kDimGpu] += kMilli;
    all[dim_of(gpu.model)] += kMilli;
  }
  return all;
}

// The amounts that exist, by pool.
template <class Counts>
std::vector<Amounts> room_of_pools(const State& state, Counts&& counts) {
  std::vector<Amounts> room(state.pools().size());
  for (const NodeState& node : state.nodes()) {
    if (counts(node)) room[node.pool] += amounts_of_all(node);
  }
  return room;
}

Amounts sum_over(const std::vector<Amounts>& room, const std::vector<bool>& open) {
  Amounts sum;
  for (std::size_t p = 0; p < room.size(); ++p) {
    if (open[p]) sum += room[p];
  }
  return sum;
}

bool is_there(const NodeState& node) { return node.status != NodeStatus::kLost; }

struct Alone {
  std::int64_t lacks = 0;
  const QueueState* queue = nullptr;
  std::size_t dim = 0;
  std::int64_t room = 0;
};

// The queue that lacks most of its guarantee even if no other queue had one; of equal ones the lowest in the tree.
std::optional<Alone> lacks_alone(const State& state, bool gpus, std::size_t of) {
  const auto room =
      room_of_pools(state, [&](const NodeState& node) { return node.takes_tasks() && !state.is_burst(node.id); });
  const auto open = open_pools(state);
  std::optional<Alone> most;
  for (const QueueState& queue : state.queues()) {
    if (queue.removed) continue;
    const Amounts there = sum_over(room, open[queue.id.index()]);
    for (std::size_t d = 0; d < kDims; ++d) {
      if (!(d == of || (gpus && d >= kDimFirstModel)) || !queue.guaranteed.states(d)) continue;
      const std::int64_t lacks = queue.guaranteed.amounts[d] - there[d];
      if (lacks <= 0) continue;
      const auto rank = [](const Alone& one) { return std::tuple(one.lacks, one.queue->depth); };
      const Alone one{lacks, &queue, d, there[d]};
      if (!most || rank(one) > rank(*most)) most = one;
    }
  }
  return most;
}

// Nodes that do not count although they are there and in an ordinary pool.
std::size_t out_of_use(const State& state) {
  return static_cast<std::size_t>(std::count_if(state.nodes().begin(), state.nodes().end(), [&](const NodeState& node) {
    return is_there(node) && !node.takes_tasks() && !state.is_burst(node.id);
  }));
}

}  // namespace

// The guarantees exceed what could be met at once.
void advise_on_guarantees(Survey& survey) {
  const State& state = survey.state();
  const GuaranteeCoverage backing(state, GuaranteeCoverage::Of::kGuarantees);
  for (const auto& [dim, sum] : {std::pair(kDimGpu, backing.gpu_milli()), std::pair(kDimCpu, backing.cpu_milli()),
                                 std::pair(kDimMemory, backing.memory_mib())}) {
    if (sum.asked <= sum.met) continue;
    Advice advice{AdviceCode::kGuaranteesNotBacked, AdviceSeverity::kWarning, AdviceAbout::kCluster, {}, {}, {}};
    advice.text = "The queues are guaranteed " + amount_words(state, dim, sum.asked) +
                  " in all, of which no more than " + amount_words(state, dim, sum.met) + " could be met at once.";
    if (const auto alone = lacks_alone(state, dim == kDimGpu, dim)) {
      advice.text += " Queue " + alone->queue->path + " alone has " +
                     amount_words(state, alone->dim, alone->queue->guaranteed.amounts[alone->dim]) +
                     " guaranteed; the pools open to it back " + amount_words(state, alone->dim, alone->room) + ".";
    }
    if (const std::size_t out = out_of_use(state); out > 0) {
      advice.text += " " + counted(static_cast<std::int64_t>(out), "node") + " that " + verb(out, "take", "takes") +
                     " no tasks now " + verb(out, "do", "does") + " not count.";
    }
    advice.remedy = "Lower `guaranteed` of queues to what the nodes outside burst pools have, or add nodes there.";
    survey.say(std::move(advice), sum.asked - sum.met);
  }
}

namespace {

// The bound on the queue in the dimension, its own max aside.
struct Bound {
  std::int64_t amount = 0;
  const QueueState* above = nullptr;  // the queue with this max; null: the bound is all that exists
};

Bound bound_without(const State& state, const QueueState& queue, std::size_t dim, std::int64_t room) {
  Bound bound{room, nullptr};
  for (QueueId q = queue.parent; q.valid(); q = state.queue(q).parent) {
    const QueueState& above = state.queue(q);
    if (above.max[dim] < bound.amount) bound = {above.max[dim], &above};
  }
  return bound;
}

}  // namespace

// A max above all that the pools open to the queue have, or above the max of a parent. Nothing is said of resources
// that these pools do not have yet.
void advise_on_ceilings(Survey& survey) {
  const State& state = survey.state();
  const auto room = room_of_pools(state, is_there);
  const auto open = open_pools(state);
  for (const QueueState& queue : state.queues()) {
    if (queue.removed) continue;
    const Amounts there = sum_over(room, open[queue.id.index()]);
    std::string too_high;
    std::int64_t count = 0;
    for (std::size_t d = 0; d < kDims; ++d) {
      if (d == kDimGpuEquivalent || queue.max[d] == kUnlimited || there[d] == 0) continue;
      const Bound bound = bound_without(state, queue, d, there[d]);
      if (queue.max[d] <= bound.amount) continue;
      const std::string most = amount_words(state, d, bound.amount);
      too_high += (count++ == 0 ? "" : "; ") + amount_words(state, d, queue.max[d]) +
                  (bound.above == nullptr ? ", where the pools open to it have " + most
                                          : ", where queue " + bound.above->path + " may have " + most);
    }
    if (count == 0) continue;
    survey.say({AdviceCode::kCeilingBoundsNothing, AdviceSeverity::kNote, AdviceAbout::kQueue, queue.path,
                "Its `max` bounds nothing: " + too_high + ".",
                "Set `max` of the queue to what it may really have, or leave it out; further nodes may make it bind."},
               count);
  }
}

}  // namespace berth::explain
