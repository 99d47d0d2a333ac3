#pragma once
// handle: one command against the working state. Either it is refused and nothing has changed, or its events are in the
// batch. Reports about tasks that are over, or of attempts gone by, are accepted and change nothing: backends repeat
// themselves after a restart.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "control/batch.h"
#include "model/command.h"
#include "model/ids.h"

namespace berth::control {

struct Reply {
  JobId job;                         // submissions: the job
  bool repeated = false;             // a submission with a key that was used before: the job is the earlier one
  bool updated = false;              // a submission of a service that was there: it has a new version
  bool unchanged = false;            // the command asked for what already was
  std::uint64_t version = 0;         // configurations: the version in force
  std::string name = {};             // maintenance windows: the name
  std::vector<std::string> to = {};  // jobs that move: the nodes on which it starts again
  Timestamp deadline = {};           // jobs that move: it has left by then
};

// Places for a running job that are free now, on none of the nodes `off`, or why there are none. It is handed in,
// because control and sched do not know each other; in production it is explain::find_move_target. The state is as
// before.
using FindMoveTarget =
    std::function<Result<std::vector<TaskPlacement>>(state::State&, JobId, const std::vector<NodeId>& off, Timestamp)>;

// Without `move_target` no job is moved.
Result<Reply> handle(Batch& batch, const Command& command, const FindMoveTarget& move_target = {});

// Whether a node like this may register.
Result<void> check_node(const state::State& state, const NodeSpec& spec);

}  // namespace berth::control
