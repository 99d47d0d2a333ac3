#pragma once
// Requests by libcurl to an issuer: a GET for its documents, a POST to its token endpoint. Bounded: kFetchTimeoutMs, 1
// MiB, no redirects. Blocks its thread.

#include <atomic>
#include <string>

#include "base/result.h"

namespace berth::identity {

inline constexpr long kFetchTimeoutMs = 10'000;

// `ca_file`: the certificates that TLS is checked with; empty: those of the system. Ends early once `stopping` is true.
Result<std::string> fetch(const std::string& url, const std::string& ca_file, const std::atomic<bool>& stopping);

struct PostAnswer {
  int status = 0;
  std::string body;
};
// A form. `user` and `password`: HTTP Basic; an empty user: none.
Result<PostAnswer> post(const std::string& url, const std::string& form, const std::string& user,
                        const std::string& password, const std::string& ca_file, const std::atomic<bool>& stopping);

}  // namespace berth::identity
