#pragma once
// What went wrong with TLS, in words that say what to do.

#include <curl/curl.h>

#include <optional>
#include <string_view>

#include "base/result.h"
#include "cli/client/client.h"

namespace berth::client {

// Returns nothing if the failure has nothing to do with TLS. `details`: libcurl's own words.
std::optional<Error> tls_failure(CURL* handle, CURLcode code, std::string_view details, const ClientOptions& options);

}  // namespace berth::client
