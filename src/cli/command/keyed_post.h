#pragma once
// Requests that must not count twice: each has an idempotency key, so that it can be sent again.

#include <string>

#include "base/result.h"
#include "cli/client/client.h"
#include "cli/session.h"

namespace berth::cli {

std::string random_key();

// Posts the body until the server answers, three times at most. A connection that breaks may have carried it over; the
// key makes another try safe. A server that is not there at all is told at once by the first try.
Result<client::Reply> post_until_answered(const std::string& path, const std::string& body, const std::string& key,
                                          Session& session);

}  // namespace berth::cli
