#pragma once
// The product's own placement in the published experiment: every pod is a job that is submitted to a state, placed by
// sched::place and started by control::commit, and that never ends.

#include <optional>

#include "model/cluster_config.h"
#include "model/command.h"
#include "sim/placement/policy.h"
#include "state/state.h"

namespace berth::bench {

class ProductPlacement final : public sim::placement::PlacementScore {
 public:
  explicit ProductPlacement(NodeScore score) : score_(score) {}

  std::optional<sim::placement::Choice> pick(const sim::placement::Fleet& fleet,
                                             const sim::placement::PodShape& shape) override;
  void on_change(std::uint32_t) override {}  // the state knows

 private:
  void start(const sim::placement::Fleet& fleet);
  void command(const Command& command);

  NodeScore score_;
  bool started_ = false;
  state::State state_;
};

}  // namespace berth::bench
