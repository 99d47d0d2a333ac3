#pragma once
// The nodes that can take a task now, tightest first, drawn lazily from the node index: whole groups are judged at once
// and only groups that may hold the next node are opened. What is drawn does not change the state; a gang keeps what it
// has taken itself (sched/place).
//
// Where the nodes are looked at that have the image of the task, they go before others of a group, and so before all
// that are as tight: what a group has of them is walked by itself.

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

// Whether the nodes of the group have the GPUs for a task.
bool group_fits(const TaskRequirements& ask, const state::GroupKey& key);
// Whether some nodes with GPUs of these models may have them.
inline bool may_fit(const TaskRequirements& ask, const state::ModelGroups& groups) {
  return ask.group.request.gpus == 0 || (groups.models & ask.models) != 0;
}

class FitOrder {
 public:
  // `scored` counts the groups and nodes looked at.
  FitOrder(const state::State& state, const TaskRequirements& ask, std::uint64_t& scored);

  // The next node by (GPU share left, image missing, CPU left, id), or nothing. An exclusive task gets the smallest.
  std::optional<NodeId> next();

 private:
  using Members = state::NodeGroup::Members;
  // Groups that are kept together, at the tightest that was not looked at.
  struct List {
    std::int64_t available_milli = 0;
    state::NodeGroups::const_iterator at;
    state::NodeGroups::const_iterator end;
  };
  // An open group at its next node; where images are looked at, the nodes of it that have the image, or lack it.
  struct Stream {
    std::int64_t available_milli = 0;
    bool lacks_image = false;
    Members::const_iterator at;
    Members::const_iterator end;
    std::optional<ImageHolders::Listed> listed;  // then those behind `at`, the last one first
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
  std::size_t next_reach_ = 0;  // lists of less were met, or are of no use
  std::priority_queue<List, std::vector<List>, Later> met_;
  std::priority_queue<Stream, std::vector<Stream>, Later> open_;
  std::optional<std::vector<NodeId>> untouched_;  // exclusive jobs: the empty nodes that could take a task
  std::size_t next_untouched_ = 0;
};

}  // namespace berth::sched
