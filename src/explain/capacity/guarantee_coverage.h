#pragma once
// Computes how much of all guarantees the fleet can meet at once. Guarantees are backed by the GPUs of each pool and
// model, and by the cores and memory of each pool. Only nodes that take tasks count, and burst pools do not.
//
// The result is a maximum flow from queues to these resources (Ford and Fulkerson, "Maximal Flow Through a Network",
// 1956). A queue can use the pools that are open to it or to queues below it.
//
// Nodes can be taken out and put back, to see whether less is backed without them. With Of::kKeptBack, the flow is
// computed for what queues with a lending limit keep back and do not use yet, against free resources.
//
// Only sums count: a guarantee of eight GPUs is backed by two nodes with four idle GPUs each. Guarantees count as
// decayed (state/guarantee_decay.h). The classes of jobs that a pool takes are ignored.

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "state/state.h"

namespace berth::explain {

// Returns by queue: the pools that are open to it or to a queue below it.
std::vector<std::vector<bool>> open_pools(const state::State& state);

class GuaranteeCoverage {
 public:
  enum class Of { kGuarantees, kKeptBack };
  // Counts all nodes that take tasks.
  GuaranteeCoverage(const state::State& state, Of of);

  // take removes, and put_back adds, `count` nodes like `node`. holds returns true if as much is backed as at first.
  void take(const state::NodeState& node, std::int64_t count) { add(node, -count); }
  void put_back(const state::NodeState& node, std::int64_t count) { add(node, +count); }
  bool holds() const;

  // Returns the sum of all guarantees, and how much of it was met at first.
  struct Sum {
    std::int64_t asked = 0;
    std::int64_t met = 0;
  };
  Sum gpu_milli() const { return gpus_.sum(); }
  Sum cpu_milli() const { return cpus_.sum(); }
  Sum memory_mib() const { return memory_.sum(); }

 private:
  // Demands on sets of cells (bit c: cell c may serve it), and the capacity of each cell.
  struct Flow {
    std::map<std::vector<bool>, std::int64_t> demands;
    std::vector<std::int64_t> cells;
    std::int64_t at_first = 0;

    std::int64_t most() const;
    Sum sum() const;
    bool holds() const { return demands.empty() || most() >= at_first; }
  };

  void add(const state::NodeState& node, std::int64_t count);
  // Returns what is guaranteed to the queue, or with kKeptBack, the part of it that the queue keeps idle for itself.
  std::int64_t asked(const state::QueueState& queue, std::size_t dim) const;
  void add_demands();
  std::int64_t demand_gpus(QueueId queue, const std::vector<std::vector<bool>>& open);

  const state::State& state_;
  Of of_;
  Flow gpus_;    // one cell for each pool and GPU model
  Flow cpus_;    // one cell for each pool
  Flow memory_;  // one cell for each pool
};

}  // namespace berth::explain
