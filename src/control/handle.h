#pragma once
// handle applies one command to the working state. Either the command is refused with an error and changes nothing, or
// its events are in the batch. A report about a task that is over, or about an earlier attempt, is accepted and changes
// nothing, because backends repeat reports after a restart.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "control/batch.h"
#include "model/command.h"
#include "model/ids.h"

namespace berth::control {

// A job with tasks on a node that an operator drains.
struct DrainedJob {
  JobId job;
  std::string user = {};
  bool leaves = false;         // it is asked to stop; else it runs to its end
  bool loses_work = false;     // it cannot save its work when it is asked to stop
  std::int64_t unsaved_s = 0;  // work since its last checkpoint; 0 if it loses none
  std::int64_t gpu_milli = 0;
  Timestamp ends = Timestamp::never();  // its time limit
};

struct Reply {
  JobId job;               // submissions: the new, updated or repeated job
  bool repeated = false;   // the idempotency key was used before, or a service is unchanged: `job` is the earlier one
  bool updated = false;    // the submission gave an existing service a new version
  bool unchanged = false;  // the state was already as the command wants it
  bool stale = false;      // configurations: another version is in force than if_version; nothing changes
  std::uint64_t version = 0;               // configurations: the version that is in force
  std::string name = {};                   // maintenance windows: the name of the window
  std::vector<std::string> to = {};        // moved jobs: the nodes on which the job starts again
  Timestamp deadline = {};                 // moved jobs: when the grace of the job ends
  std::vector<DrainedJob> drained = {};    // drained nodes: the jobs there, by id
  std::vector<std::string> warnings = {};  // submissions: what keeps the job from ever starting, rules it breaks
  std::vector<LimitChange> limits = {};    // queues: what the command changed
  std::string revision = {};               // queues: the revision after it, or the one that is in force if stale
  std::size_t reported = 0;                // quantities: how many reports are new
  std::string stale_by = {};               // queues: if stale, what was changed last and by whom
};

// Returns placements for a running job that are free now and on none of the nodes `off`, or the error that says why
// there are none. The state is unchanged afterwards. The function is a parameter, because control may not include
// sched; production passes explain::find_move_target.
using FindMoveTarget =
    std::function<Result<std::vector<TaskPlacement>>(state::State&, JobId, const std::vector<NodeId>& off, Timestamp)>;

// Returns the reply, or the error that refuses the command. If `move_target` is empty, each MoveJob command is refused.
Result<Reply> handle(Batch& batch, const Command& command, const FindMoveTarget& move_target = {});

// Returns an error if a node with this description may not register: a malformed name, amounts out of range, a
// malformed list of images, MIG that its backend cannot cut, or too many GPU models.
Result<void> check_node(const state::State& state, const NodeSpec& spec);

}  // namespace berth::control
