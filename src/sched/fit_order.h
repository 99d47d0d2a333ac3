#pragma once
// The nodes that can take a task now, tightest first, drawn lazily from the node index: whole groups are judged at once
// and only groups that may hold the next node are opened. What is drawn does not change the state; a gang keeps what it
// has taken itself (sched/place).

#include <array>
#include <cstdint>
#include <optional>
#include <queue>
#include <vector>

#include "model/ids.h"
#include "sched/node_fit.h"
#include "state/node_index.h"
#include "state/state.h"

namespace berth::sched {

// Whether the nodes of the group have the GPUs for a task.
bool group_fits(const TaskAsk& ask, const state::GroupKey& key, const state::NodeGroup& group);

class FitOrder {
 public:
  // `scored` counts the groups and nodes looked at.
  FitOrder(const state::State& state, const TaskAsk& ask, std::uint64_t& scored);

  // The next node by (GPU share left, CPU left, id), or nothing.
  std::optional<NodeId> next();

 private:
  using Members = decltype(state::NodeGroup::memory);
  struct Bucket {
    state::NodeGroups::const_iterator at;
    state::NodeGroups::const_iterator end;
  };
  // An open group at its next node.
  struct Stream {
    std::int64_t available_milli = 0;
    Members::const_iterator at;
    Members::const_iterator end;
  };
  struct Later {
    bool operator()(const Stream& a, const Stream& b) const;
  };

  std::optional<NodeId> next_untouched();
  void open_tightest();
  bool skip_to_fitting(Stream& stream);
  Bucket* tightest_bucket();

  const state::State& state_;
  const TaskAsk& ask_;
  std::uint64_t& scored_;
  std::vector<Bucket> buckets_;
  std::priority_queue<Stream, std::vector<Stream>, Later> open_;
  std::size_t next_node_ = 0;  // exclusive jobs: all empty nodes fit alike
};

}  // namespace berth::sched
