#pragma once
// The tokens by which a running job speaks for itself to this server: `berth-job-17-2-` and a keyed digest of that, or
// `berth-save-17-2-` and likewise, which may report saves and nothing else. They are derived from the server's secret,
// so nothing is stored for them, and a restart changes none. Whether the attempt runs is the caller's to look up. Pure.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model/ids.h"

namespace berth::identity {

struct JobAttempt {
  JobId job;
  std::uint32_t attempt = 0;
  bool operator==(const JobAttempt&) const = default;
};

std::string job_token(const std::string& secret, const JobAttempt& attempt);
std::string save_token(const std::string& secret, const JobAttempt& attempt);

// Returns the attempt that the token was made for with this secret, or nothing. The digest is compared in constant
// time.
std::optional<JobAttempt> read_job_token(const std::string& secret, std::string_view token);
std::optional<JobAttempt> read_save_token(const std::string& secret, std::string_view token);

}  // namespace berth::identity
