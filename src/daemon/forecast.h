#pragma once
// What a command would do now. It is tried on a copy of the state by the function that runs the server's own iterations
// (control/iteration.h), so it decides as the server would. Nothing of it is stored or carried out.

#include "api/service.h"
#include "base/result.h"
#include "base/timestamp.h"
#include "model/command.h"
#include "state/state.h"

namespace berth::daemon {

// Returns what would become of the job that is submitted or changed, without Forecast::explained, or the error that
// refuses the command. `state` is left as it would be after the command.
Result<api::Forecast> forecast(state::State& state, const Command& command, Timestamp now);

}  // namespace berth::daemon
