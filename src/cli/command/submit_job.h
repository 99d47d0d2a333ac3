#pragma once
// Submitting, as `berth submit` and `berth run` share it.

#include "cli/options.h"
#include "cli/session.h"

namespace berth::cli {

// Reads the job, sends it under its idempotency key (a random one when none is given, so that a second try after a
// broken connection is the same job), and gives the server's {id, name, repeated}.
Result<Json> submit_job(const JobOptions& options, Session& session);

}  // namespace berth::cli
