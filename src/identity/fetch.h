#pragma once
// One GET by libcurl for the documents of an issuer. Bounded: kFetchTimeoutMs, 1 MiB, no redirects. Blocks its thread.

#include <atomic>
#include <string>

#include "base/result.h"

namespace berth::identity {

inline constexpr long kFetchTimeoutMs = 10'000;

// `ca_file`: the certificates that TLS is checked with; empty: those of the system. Ends early once `stopping` is true.
Result<std::string> fetch(const std::string& url, const std::string& ca_file, const std::atomic<bool>& stopping);

}  // namespace berth::identity
