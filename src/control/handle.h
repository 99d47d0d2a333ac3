#pragma once
// handle: one command against the working state. Either it is refused and nothing has changed, or its events are in the
// batch. Reports about tasks that are over, or of attempts gone by, are accepted and change nothing: backends repeat
// themselves after a restart.

#include <cstdint>
#include <string>

#include "base/result.h"
#include "control/batch.h"
#include "model/command.h"
#include "model/ids.h"

namespace berth::control {

struct Reply {
  JobId job;                  // submissions: the job
  bool repeated = false;      // a submission with a key that was used before: the job is the earlier one
  bool updated = false;       // a submission of a service that was there: it has a new version
  bool unchanged = false;     // the command asked for what already was
  std::uint64_t version = 0;  // configurations: the version in force
  std::string name = {};      // maintenance windows: the name
};

Result<Reply> handle(Batch& batch, const Command& command);

// Whether a node like this may register.
Result<void> check_node(const state::State& state, const NodeSpec& spec);

}  // namespace berth::control
