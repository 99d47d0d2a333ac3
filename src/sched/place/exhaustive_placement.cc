#include "sched/place/exhaustive_placement.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "sched/place/numa.h"

namespace berth::sched {

namespace {

using state::NodeState;
using state::State;

class EveryWay {
 public:
  EveryWay(Gang& gang, const Counts& counts, const JobLevels& levels)
      : gang_(gang), counts_(counts), levels_(levels), order_(counts.size()), homes_(gang.state(), levels) {
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    const auto rank = [&](std::size_t g) {
      const TaskRequest& request = gang.ask(g).group.request;
      return std::tuple(is_strict(gang.ask(g).numa), request.total_gpu_milli(), -places_on_a_gpu(gang.ask(g)),
                        request.cpu_milli, request.memory_mib);
    };
    std::stable_sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) { return rank(a) > rank(b); });
    for (const NodeState& node : gang.state().nodes()) {
      if (node.takes_tasks() && is_in_all(gang.state(), node.id, levels.required)) nodes_.push_back(node.id);
    }
  }

  std::optional<std::vector<Region>> place() {
    if (counts_.size() * nodes_.size() > static_cast<std::size_t>(kMostSteps)) return std::nullopt;
    if (!may_fit() || !put_group(0)) return std::nullopt;
    std::vector<Region> regions;
    for (std::size_t g = 0; g < counts_.size(); ++g) regions.push_back(homes_.around(g));
    return regions;
  }

 private:
  // Returns false if the nodes lack GPUs for all groups together, or places for one group alone.
  bool may_fit() {
    std::int64_t lacking = 0;
    for (std::size_t g = 0; g < counts_.size(); ++g)
      lacking += counts_[g] * gang_.ask(g).group.request.total_gpu_milli();
    for (const NodeId node : nodes_) {
      for (const state::GpuSlot& gpu : gang_.state().node(node).gpus) lacking -= gpu.available_milli();
    }
    if (lacking > 0) return false;
    if (gang_.neighbours().matter()) return true;  // a task may open nodes to the next one
    // Alone on the whole fleet is the cheaper question, and most groups that do not fit are refused by it.
    const std::size_t mark = gang_.mark();
    for (std::size_t g = 0; g < counts_.size(); ++g) {
      const bool fits_alone = gang_.add(g, counts_[g], {}) == counts_[g];
      gang_.rollback_to(mark);
      if (!fits_alone) return false;
    }
    slots_.assign(counts_.size(), Counts(nodes_.size() + 1));
    for (std::size_t g = 0; g < counts_.size(); ++g) {
      for (std::size_t i = nodes_.size(); i-- > 0;) {
        slots_[g][i] = slots_[g][i + 1] + gang_.add(g, counts_[g], {{}, nodes_[i]});
        gang_.rollback_to(mark);
      }
      if (slots_[g].front() < counts_[g]) return false;
    }
    return true;
  }

  // Places the groups from number `next` of the order on.
  bool put_group(std::size_t next) { return next == order_.size() || put_tasks(next, 0, counts_[order_[next]]); }

  // Places `left` tasks of the group on nodes from `first` on, and then the groups after it.
  bool put_tasks(std::size_t next, std::size_t first, std::int32_t left) {
    if (left == 0) return put_group(next + 1);
    if (first == nodes_.size() || steps_ == kMostSteps) return false;
    const std::size_t g = order_[next];
    if (!slots_.empty() && slots_[g][first] < left) return false;
    const TopologyScope before = homes_;
    if (homes_.let_in(g, nodes_[first])) {
      ++steps_;
      const std::size_t mark = gang_.mark();
      for (std::int32_t here = gang_.add(g, left, {{}, nodes_[first]}); here > 0; --here) {
        if (put_tasks(next, first + 1, left - here)) return true;
        gang_.rollback_to(mark + static_cast<std::size_t>(here) - 1);
      }
    }
    homes_ = before;
    return put_tasks(next, first + 1, left);
  }

  Gang& gang_;
  const Counts& counts_;
  const JobLevels& levels_;
  std::vector<std::size_t> order_;
  std::vector<NodeId> nodes_;
  TopologyScope homes_;
  std::vector<Counts> slots_;  // by group and node: tasks that fit from that node on; empty if unknown
  std::int32_t steps_ = 0;
};

}  // namespace

std::optional<std::vector<Region>> place_exhaustively(Gang& gang, const Counts& counts, const JobLevels& levels) {
  if (counts.size() < 2 || gang.state().nodes().size() > kFewNodes) return std::nullopt;
  return EveryWay(gang, counts, levels).place();
}

}  // namespace berth::sched
