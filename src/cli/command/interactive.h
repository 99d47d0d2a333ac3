#pragma once
// The terminal of an interactive job, as `berth attach` and `berth run -it` share it.

#include <string>

#include "base/result.h"
#include "cli/session.h"

namespace berth::cli {

struct Attachment {
  bool joined = false;  // the server joined this terminal to that of the job; false: it refused to, and `code` says why
  Result<int> code;     // the exit code of the job's command
};

// Attaches it until it ends. Not joined and kConflict: the job does not run yet, or has no terminal. Joined and an
// error: the terminal was attached elsewhere, or the connection was lost.
// Requires: standard input is a terminal.
Attachment attach_terminal(const std::string& id, Session& session);

}  // namespace berth::cli
