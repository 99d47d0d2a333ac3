#pragma once
// What the identity of a job says of it to others. Pure; time is an argument.

#include <boost/json/object.hpp>
#include <cstdint>
#include <string>

#include "base/timestamp.h"
#include "model/ids.h"

namespace berth::identity {

// How long the token is good. Short, because nobody can take it back: another service does not ask this server.
inline constexpr std::int64_t kJobTokenLifetimeMs = 10 * 60'000;

// A job that runs.
struct RunningJob {
  JobId job;
  std::uint32_t attempt = 0;
  std::string queue;  // the path: org/team/project
  std::string user;   // its owner
};

// `queue:research/nlp:job:17:attempt:2`. No name of a queue has a colon.
std::string job_subject(const RunningJob& job);

// `id` is of this token alone (`jti`).
boost::json::object job_claims(const RunningJob& job, const std::string& issuer, const std::string& audience,
                               const std::string& id, Timestamp now);

}  // namespace berth::identity
