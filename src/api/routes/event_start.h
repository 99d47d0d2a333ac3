#pragma once
// Where a read of the log begins, of all routes that page or stream through it: what the request says, and what is
// answered where there is no such place.

#include <optional>

#include "api/http/message.h"
#include "api/service.h"

namespace berth::api {

// Returns true if the request asks for a stream that goes on.
bool wants_event_stream(const http::Request& request);

// The first event to be shown: behind Last-Event-ID, else `from`, else the first. What was sent last wins over `from`:
// a client that reconnects repeats its first request and adds Last-Event-ID.
Result<Seq> event_start_of(const http::Request& request);

// Refuses to go on behind an event that there is not yet. The log is then not the one that the client followed, for
// example after a backup was restored: its events up to that number would be missed in silence.
std::optional<http::Response> refuse_beyond_end(Service& service, const http::Request& request, Seq from);

// The answer where events cannot be read. An archived start is gone for good: 410, and a snapshot is where to begin.
http::Response event_refusal(const Error& error);

}  // namespace berth::api
