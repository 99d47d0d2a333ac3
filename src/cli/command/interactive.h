#pragma once
// The terminal of an interactive job, as `berth attach` and `berth run -it` share it.

#include <string>

#include "base/result.h"
#include "cli/session.h"

namespace berth::cli {

// Attaches it and returns the exit code of the job's command. Error kConflict: it does not run yet, or has no terminal.
// Requires: standard input is a terminal.
Result<int> attach_terminal(const std::string& id, Session& session);

}  // namespace berth::cli
