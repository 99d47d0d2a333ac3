#include "explain/capacity/guarantee_coverage.h"

#include <algorithm>
#include <limits>

#include "base/checked.h"

namespace berth::explain {

using state::NodeState;
using state::QueueState;
using state::State;

namespace {

constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
// The cap on one guarantee, more than any fleet has, so that the sum over all queues and models does not wrap.
constexpr std::int64_t kMostAsked = std::int64_t{1} << 44;

// One search for an augmenting path (Edmonds and Karp): from a demand that is not met to a cell with something left,
// over cells that another demand could exchange for others.
class Augmenting {
 public:
  Augmenting(const std::vector<const std::vector<bool>*>& open, std::vector<std::int64_t> wanted,
             std::vector<std::int64_t> left)
      : open_(open), wanted_(std::move(wanted)), left_(std::move(left)) {
    flow_.assign(open_.size(), std::vector<std::int64_t>(left_.size()));
  }

  std::int64_t run() {
    std::int64_t sum = 0;
    for (std::size_t d = 0; d < open_.size(); ++d) {
      while (wanted_[d] > 0) {
        const std::int64_t more = push(d);
        if (more == 0) break;
        sum = checked_add(sum, more);
      }
    }
    return sum;
  }

 private:
  // The shortest way (Edmonds and Karp); 0: there is none.
  std::int64_t push(std::size_t from) {
    std::vector<std::size_t> cell_from(left_.size(), kNone);  // the demand by which each cell was reached
    std::vector<std::size_t> demand_from(open_.size(), kNone);
    std::vector<std::size_t> line{from};
    for (std::size_t next = 0; next < line.size(); ++next) {
      const std::size_t d = line[next];
      for (std::size_t c = 0; c < left_.size(); ++c) {
        if (!(*open_[d])[c] || cell_from[c] != kNone) continue;
        cell_from[c] = d;
        if (left_[c] > 0) return along(from, c, cell_from, demand_from);
        for (std::size_t other = 0; other < open_.size(); ++other) {
          if (other == from || demand_from[other] != kNone || flow_[other][c] == 0) continue;
          demand_from[other] = c;
          line.push_back(other);
        }
      }
    }
    return 0;
  }

  std::int64_t along(std::size_t from, std::size_t last, const std::vector<std::size_t>& cell_from,
                     const std::vector<std::size_t>& demand_from) {
    std::int64_t amount = std::min(wanted_[from], left_[last]);
    for (std::size_t d = cell_from[last]; d != from; d = cell_from[demand_from[d]]) {
      amount = std::min(amount, flow_[d][demand_from[d]]);
    }
    left_[last] -= amount;
    wanted_[from] -= amount;
    std::size_t c = last;
    while (true) {
      const std::size_t d = cell_from[c];
      flow_[d][c] += amount;
      if (d == from) return amount;
      c = demand_from[d];
      flow_[d][c] -= amount;
    }
  }

  const std::vector<const std::vector<bool>*>& open_;
  std::vector<std::int64_t> wanted_;
  std::vector<std::int64_t> left_;
  std::vector<std::vector<std::int64_t>> flow_;
};

}  // namespace

std::vector<std::vector<bool>> open_pools(const State& state) {
  const std::size_t pools = state.pools().size();
  std::vector<std::vector<bool>> open(state.queues().size(), std::vector<bool>(pools));
  for (const QueueState& queue : state.queues()) {
    if (queue.removed) continue;
    for (std::uint32_t p = 0; p < pools; ++p) {
      if (!state.is_open_to(queue.id, p)) continue;
      for (const QueueId above : state.path_to(queue.id)) open[above.index()][p] = true;
    }
  }
  return open;
}

std::int64_t GuaranteeCoverage::Flow::most() const {
  std::vector<const std::vector<bool>*> open;
  std::vector<std::int64_t> wanted;
  for (const auto& [cells_open, amount] : demands) {
    open.push_back(&cells_open);
    wanted.push_back(amount);
  }
  return Augmenting(open, std::move(wanted), cells).run();
}

GuaranteeCoverage::Sum GuaranteeCoverage::Flow::sum() const {
  Sum sum{.asked = 0, .met = at_first};
  for (const auto& [open, amount] : demands) sum.asked = checked_add(sum.asked, amount);
  return sum;
}

GuaranteeCoverage::GuaranteeCoverage(const State& state, Of of) : state_(state), of_(of) {
  gpus_.cells.resize(state.pools().size() * state.gpu_models().size());
  cpus_.cells.resize(state.pools().size());
  memory_.cells.resize(state.pools().size());
  for (const NodeState& node : state.nodes()) add(node, +1);
  add_demands();
  for (Flow* flow : {&gpus_, &cpus_, &memory_}) flow->at_first = flow->most();
}

void GuaranteeCoverage::add(const NodeState& node, std::int64_t count) {
  if (!node.takes_tasks() || state_.is_burst(node.id)) return;
  const bool all = of_ == Of::kGuarantees;
  for (const state::GpuSlot& gpu : node.gpus) {
    const std::int64_t milli = all ? kMilli : std::max<std::int64_t>(0, gpu.available_milli());
    if (gpu.usable()) gpus_.cells[node.pool * state_.gpu_models().size() + gpu.model.index()] += count * milli;
  }
  cpus_.cells[node.pool] +=
      count * (all ? node.own_cpu_milli() : std::max<std::int64_t>(0, node.available_cpu_milli()));
  memory_.cells[node.pool] +=
      count * (all ? node.own_memory_mib() : std::max<std::int64_t>(0, node.available_memory_mib()));
}

std::int64_t GuaranteeCoverage::asked(const QueueState& queue, std::size_t dim) const {
  const std::int64_t guaranteed = std::min(queue.guaranteed.amounts[dim], kMostAsked);
  if (of_ == Of::kGuarantees) return guaranteed;
  if (queue.lending_limit[dim] == kUnlimited) return 0;
  const std::int64_t used = queue.usage[dim] - queue.burst_usage[dim] + queue.nominated[dim];
  return std::max<std::int64_t>(0, std::max<std::int64_t>(0, guaranteed - queue.lending_limit[dim]) - used);
}

// Adds what the queue is guaranteed beyond the guarantees below it, of any model and of each model. Returns all that is
// guaranteed there.
std::int64_t GuaranteeCoverage::demand_gpus(QueueId id, const std::vector<std::vector<bool>>& open) {
  const QueueState& queue = state_.queue(id);
  const std::size_t models = state_.gpu_models().size();
  const auto ask = [&](std::int64_t amount, std::size_t model) {
    if (amount <= 0) return;
    std::vector<bool> cells(gpus_.cells.size());
    for (std::size_t cell = 0; cell < cells.size(); ++cell) {
      cells[cell] = open[id.index()][cell / models] && (model == kNone || cell % models == model);
    }
    std::int64_t& sum = gpus_.demands[std::move(cells)];
    sum = checked_add(sum, amount);
  };
  std::int64_t within = 0;
  for (const QueueId child : queue.children) within = checked_add(within, demand_gpus(child, open));
  for (std::size_t m = 0; m < models; ++m) {
    const std::size_t dim = dim_of(GpuModelId(static_cast<std::uint16_t>(m)));
    if (!queue.guaranteed.states(dim)) continue;
    std::int64_t beyond = asked(queue, dim);
    for (const QueueId child : queue.children) beyond -= asked(state_.queue(child), dim);
    ask(beyond, m);
    within = checked_add(within, std::max<std::int64_t>(0, beyond));
  }
  if (!queue.guaranteed.states(kDimGpu)) return within;
  const std::int64_t stated = asked(queue, kDimGpu);
  ask(stated - within, kNone);
  return std::max(stated, within);
}

void GuaranteeCoverage::add_demands() {
  const auto open = open_pools(state_);
  demand_gpus(state_.root(), open);
  for (const auto& [dim, flow] : {std::pair(kDimCpu, &cpus_), std::pair(kDimMemory, &memory_)}) {
    for (const QueueState& queue : state_.queues()) {
      if (queue.removed || !queue.guaranteed.states(dim)) continue;
      std::int64_t beyond = asked(queue, dim);
      for (const QueueId child : queue.children) beyond -= asked(state_.queue(child), dim);
      if (beyond <= 0) continue;
      std::int64_t& sum = flow->demands[open[queue.id.index()]];
      sum = checked_add(sum, beyond);
    }
  }
}

bool GuaranteeCoverage::holds() const { return gpus_.holds() && cpus_.holds() && memory_.holds(); }

}  // namespace berth::explain
