#pragma once
// What a change of a queue by command would do, tried on copies of the state by the function that runs the server's own
// iterations (control/iteration.h). Nothing of it is stored or carried out.

#include "api/service.h"
#include "base/result.h"
#include "base/timestamp.h"
#include "explain/viewer.h"
#include "model/command.h"
#include "state/state.h"

namespace berth::daemon {

// Returns the difference that the command makes, or the error that refuses it. Requires two equal states; both are left
// as the iterations make them.
Result<api::QueuePreview> preview_queue_change(state::State& without, state::State& with, const Command& command,
                                               Timestamp now, const explain::Viewer& viewer);

}  // namespace berth::daemon
