#include "sched/place/image_holders.h"

#include <algorithm>

namespace berth::sched {

ImageHolders::Listed ImageHolders::in(const state::NodeGroup& group, std::int64_t least_cpu_milli,
                                      std::uint64_t& scored) const {
  Listed listed;
  scored += ask_.image_on->size();
  for (const NodeId node : *ask_.image_on) {
    if (!state_.node_index().is_in(node, group)) continue;
    const auto at = group.memory.find({state_.node(node).available_cpu_milli(), node});
    if (at->first.first >= least_cpu_milli) listed.push_back(at);
  }
  std::sort(listed.begin(), listed.end(), [](const auto& a, const auto& b) { return a->first > b->first; });
  return listed;
}

}  // namespace berth::sched
