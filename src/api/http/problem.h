#pragma once
// Every error leaves as an RFC 9457 problem document (application/problem+json): type, title, status, detail, instance,
// and berth's extension member `code`, a stable word that programs may switch on. Details never echo a credential.

#include <cstdint>
#include <string>
#include <string_view>

#include "api/http/message.h"
#include "base/result.h"

namespace berth::http {

int status_of(ErrorCode code);

// `type` is "urn:berth:problem:<code>".
Response problem(int status, std::string_view code, std::string_view detail);
Response problem(ErrorCode code, std::string_view detail);
inline Response problem(const Error& error) { return problem(error.code, error.message); }

// Returns the answer to a client above its rate limit: 429, with Retry-After in whole seconds.
Response too_many_requests(std::int64_t wait_ms);

// Adds `instance`, the path of the request, to a problem document; leaves any other response alone. The server does
// this.
void state_instance(Response& response, std::string_view path);

}  // namespace berth::http
