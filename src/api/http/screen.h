#pragma once
// Looks at the raw bytes of a request's head before Beast parses them, and refuses what RFC 9112 lets two parsers read
// differently: bare line feeds, folded lines, space before the colon, NUL and other control bytes, two Content-Lengths,
// Content-Length beside Transfer-Encoding, codings other than chunked, no Host or two. Pure; nothing is kept.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "api/http/server.h"

namespace berth::http {

struct Refusal {
  int status;
  std::string code;
  std::string detail;
};

struct HeadScan {
  std::size_t size = 0;  // of the head with its empty line, once that has arrived
  std::optional<Refusal> refusal;
};

// Looks for the end of the head in `received`, of which the first `scanned` bytes were seen by an earlier call.
HeadScan scan_head(std::string_view received, std::size_t scanned, const Limits& limits);

// `head` is a request line, header lines, and the empty line, each ended by CRLF.
std::optional<Refusal> screen_head(std::string_view head, const Limits& limits);

// Of header values: spaces and tabs around them, and ASCII case.
std::string_view trim_whitespace(std::string_view text);
bool equals_ignoring_case(std::string_view a, std::string_view b);

}  // namespace berth::http
