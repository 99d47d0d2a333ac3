#pragma once
// What backs the guarantees: the GPUs of each pool and model, the cores and the memory of each pool, of nodes that take
// tasks, outside burst pools. How much of all guarantees these could meet at once is the most that flows from the
// queues, each to the pools that are open to it or below it, to what is there (Ford and Fulkerson, "Maximal Flow
// Through a Network", 1956). Nodes may be taken away and put back, to see whether less is backed without them.
//
// What queues keep for themselves by their lending limits, and do not use yet, is asked likewise of what is free now.
//
// Sums decide, not pieces: a guarantee of eight GPUs counts as backed by two idle halves of nodes. Guarantees are those
// that count (state/guarantee_decay.h); which classes of jobs a pool takes is left aside.

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "state/state.h"

namespace berth::explain {

// By queue: the pools that are open to it or to some queue below it.
std::vector<std::vector<bool>> open_pools(const state::State& state);

class GuaranteeCoverage {
 public:
  enum class Of { kGuarantees, kKeptBack };
  // By all nodes that take tasks.
  GuaranteeCoverage(const state::State& state, Of of);

  // Without so many of its nodes like this idle one, or with so many of them again; and whether as much is backed as at
  // first.
  void take(const state::NodeState& node, std::int64_t count) { add(node, -count); }
  void put_back(const state::NodeState& node, std::int64_t count) { add(node, +count); }
  bool holds() const;

  // What is asked in all, and what of that was met at first.
  struct Sum {
    std::int64_t asked = 0;
    std::int64_t met = 0;
  };
  Sum gpu_milli() const { return gpus_.sum(); }
  Sum cpu_milli() const { return cpus_.sum(); }
  Sum memory_mib() const { return memory_.sum(); }

 private:
  // What is asked of some cells together (bit c: of cell c), and what each cell has.
  struct Flow {
    std::map<std::vector<bool>, std::int64_t> demands;
    std::vector<std::int64_t> cells;
    std::int64_t at_first = 0;

    std::int64_t most() const;
    Sum sum() const;
    bool holds() const { return demands.empty() || most() >= at_first; }
  };

  void add(const state::NodeState& node, std::int64_t count);
  // Of the queue: what is guaranteed to it, or what of that it keeps idle for itself.
  std::int64_t asked(const state::QueueState& queue, std::size_t dim) const;
  void add_demands();
  std::int64_t demand_gpus(QueueId queue, const std::vector<std::vector<bool>>& open);

  const state::State& state_;
  Of of_;
  Flow gpus_;    // cells: pool times model
  Flow cpus_;    // pools
  Flow memory_;  // pools
};

}  // namespace berth::explain
