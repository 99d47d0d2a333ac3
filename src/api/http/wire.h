#pragma once
// Responses as bytes (RFC 9112).

#include <string>
#include <string_view>

#include "api/http/message.h"

namespace berth::http {

struct WireOptions {
  bool head_only = false;  // answers HEAD: the headers of a body that is not sent
  bool keep_alive = true;
};

// False if a header of the response would break the framing: a control character, or a name that is not a token.
bool can_be_sent(const Response& response);

std::string head_to_wire(const Response& response, const WireOptions& options);  // all that comes before the body
std::string to_wire(const Response& response, const WireOptions& options);
// The head of a stream; each part of the body then goes through to_chunk if `chunked`, and kLastChunk ends it.
std::string stream_head(StreamFormat format, bool chunked);
std::string to_chunk(std::string_view bytes);
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";
inline constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

}  // namespace berth::http
