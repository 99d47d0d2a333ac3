#pragma once
// Changes of single limits of a queue by command, beside the configuration file (model/queue_edit.h).

#include "base/result.h"
#include "control/batch.h"
#include "control/envelope.h"
#include "control/handle.h"
#include "model/command.h"

namespace berth::control {

Result<Reply> set_queue(Batch& batch, const SetQueue& command);
Result<Reply> undo_queue_change(Batch& batch, const UndoQueueChange& command);

// Ends the changes whose lease is over.
void reconcile_leases(Batch& batch);

// Returns the revision of the queue (revision_of). Requires that it is there.
std::string revision_in(const state::State& state, const std::string& queue);

}  // namespace berth::control
