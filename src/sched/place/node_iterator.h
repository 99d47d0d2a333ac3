#pragma once
// Node iterator: the nodes that can take a task now, tightest first, drawn lazily from the node index. Whole groups of
// nodes are checked at once, and only groups that may hold the next node are opened. Drawing a node changes nothing in
// the state; a gang records itself what it has taken (sched/place).
//
// If images are looked at, nodes with the task's image go before all nodes that are equally tight. For this, the nodes
// of a group that have the image are walked separately.

#include <array>
#include <cstdint>
#include <optional>
#include <queue>
#include <vector>

#include "model/ids.h"
#include "sched/place/image_holders.h"
#include "sched/place/node_fit.h"
#include "state/node_index.h"
#include "state/state.h"

namespace berth::sched {

// Returns true if the nodes of the group have the GPUs for a task.
bool group_fits(const TaskRequirements& ask, const state::GroupKey& key);
// Returns true if nodes with GPUs of these models may have them.
inline bool may_fit(const TaskRequirements& ask, const state::ModelGroups& groups) {
  return ask.group.request.gpus == 0 || (groups.models & ask.models) != 0;
}

class FitOrder {
 public:
  // `scored` counts the groups and nodes looked at.
  FitOrder(const state::State& state, const TaskRequirements& ask, std::uint64_t& scored);

  // Returns the next node by (GPUs left, image missing, CPU left, id), or nothing. For an exclusive task the smallest
  // nodes come first.
  std::optional<NodeId> next();

 private:
  using Members = state::NodeGroup::Members;
  // A list of groups from the index, at its tightest group not yet looked at.
  struct List {
    std::int64_t available_milli = 0;
    state::NodeGroups::const_iterator at;
    state::NodeGroups::const_iterator end;
  };
  // An open group at its next node. If images are looked at, a group has two: its nodes with the image, and those
  // without.
  struct Stream {
    std::int64_t available_milli = 0;
    bool lacks_image = false;
    Members::const_iterator at;
    Members::const_iterator end;
    std::optional<ImageHolders::Listed> listed;  // nodes still to come after `at`, in reverse order
  };
  struct Later {
    bool operator()(const List& a, const List& b) const { return a.available_milli > b.available_milli; }
    bool operator()(const Stream& a, const Stream& b) const;
  };

  std::vector<NodeId> untouched();
  std::optional<NodeId> next_untouched();
  void meet_lists();
  void meet(List list);
  void open_tightest();
  void open(std::int64_t available_milli, const state::NodeGroup& group);
  void open_image_holders(Stream stream, const state::NodeGroup& group);
  void step(Stream& stream) const;
  bool skip_to_fitting(Stream& stream);

  const state::State& state_;
  const TaskRequirements& ask_;
  std::uint64_t& scored_;
  ImageHolders holders_;
  std::size_t next_reach_ = 0;  // the next reach to open: smaller ones are open or too small
  std::priority_queue<List, std::vector<List>, Later> met_;
  std::priority_queue<Stream, std::vector<Stream>, Later> open_;
  std::optional<std::vector<NodeId>> untouched_;  // exclusive: empty nodes that can take a task
  std::size_t next_untouched_ = 0;
};

}  // namespace berth::sched
