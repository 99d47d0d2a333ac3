#pragma once
// berth's own placement score (state/fragmentation) in the published experiment, beside the policies it is compared
// with. Nodes in equal states are scored once. If the mix is learned, each requested pod is counted, placed or refused.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "sim/placement/policy.h"
#include "state/fragmentation/node_table.h"

namespace berth::sim::placement {

class BerthPlacement final : public PlacementScore {
 public:
  enum class Knowledge { kGiven, kLearned };  // the mix of the setup, or the mix of what has arrived so far

  BerthPlacement(const PolicySetup& setup, Knowledge knowledge);

  std::optional<Choice> pick(const Fleet& fleet, const PodShape& shape) override;
  void on_change(std::uint32_t node) override { changed_.push_back(node); }

 private:
  using Table = state::fragmentation::NodeTable;
  using RankedNode = std::pair<std::uint32_t,
                               std::uint32_t>;  // place in the order of ties, node

  struct Candidate {
    std::int64_t gain = 0;
    RankedNode node;
    std::int32_t gpu_free = 0;
  };

  void start(const Fleet& fleet);
  void follow_changes(const Fleet& fleet);
  void move_node(std::uint32_t node, Table::Id to);
  void sum_up();
  std::optional<Candidate> best_in_state(Table::Id state, const Fleet& fleet, const PodShape& shape,
                                         Table::RequestId request, std::span<const std::int64_t> prices);

  Knowledge knowledge_;
  std::vector<TypicalPod> given_;
  std::vector<std::uint32_t> rank_;
  std::optional<Table> table_;
  std::vector<Table::Id> state_of_;
  std::map<Table::Id, std::set<RankedNode>> nodes_in_;
  state::fragmentation::FleetSummary summary_;
  std::vector<std::uint32_t> changed_;
};

}  // namespace berth::sim::placement
