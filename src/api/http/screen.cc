#include "api/http/screen.h"

#include <algorithm>

namespace berth::http {
namespace {

Refusal bad_request(std::string detail) { return {400, "bad-request", std::move(detail)}; }

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_letter_or_digit(char c) { return is_digit(c) || (lower(c) >= 'a' && lower(c) <= 'z'); }

// RFC 9110, section 5.6.2.
bool is_token_character(char c) {
  return is_letter_or_digit(c) || std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_token_character);
}

bool is_target_character(char c) { return c > 0x20 && c < 0x7f && c != '#' && c != '"' && c != '<' && c != '>'; }

// RFC 9110, section 5.5: visible characters, spaces, tabs, and bytes from 0x80 on.
bool is_value_character(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return c == '\t' || (byte >= 0x20 && byte != 0x7f);
}

bool is_host_character(char c) {
  return is_letter_or_digit(c) || std::string_view("-._~%!$&'()*+,;=:[]").find(c) != std::string_view::npos;
}

std::optional<Refusal> screen_request_line(std::string_view line, const Limits& limits) {
  if (line.size() > limits.request_line_bytes) {
    return Refusal{414, "request-line-too-long",
                   "the request line is over " + std::to_string(limits.request_line_bytes) + " bytes"};
  }
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) {
    return bad_request("the request line is not: method, target, version, with one space between");
  }
  const std::string_view target = line.substr(first + 1, last - first - 1);
  const std::string_view version = line.substr(last + 1);
  if (!is_token(line.substr(0, first))) return bad_request("the method is not a token");
  if (target.empty() || !std::all_of(target.begin(), target.end(), is_target_character)) {
    return bad_request("the target has a character that must be percent-encoded");
  }
  if (version == "HTTP/1.1" || version == "HTTP/1.0") return std::nullopt;
  if (version.size() == 8 && version.substr(0, 5) == "HTTP/" && is_digit(version[5]) && version[6] == '.' &&
      is_digit(version[7])) {
    return Refusal{505, "version-not-supported", "this server speaks HTTP/1.1 and HTTP/1.0"};
  }
  return bad_request("the version is not HTTP/1.1 or HTTP/1.0");
}

// What the header lines say about framing and addressing, collected over all of them.
struct Framing {
  int hosts = 0;
  int content_lengths = 0;
  int transfer_encodings = 0;
};

std::optional<Refusal> screen_content_length(std::string_view value) {
  if (value.empty() || !std::all_of(value.begin(), value.end(), is_digit)) {
    return bad_request("Content-Length is not a number of bytes");
  }
  if (value.size() > 18) return Refusal{413, "body-too-large", "Content-Length is beyond any limit"};
  return std::nullopt;
}

std::optional<Refusal> screen_header(std::string_view line, Framing& framing) {
  if (line.front() == ' ' || line.front() == '\t') return bad_request("a header line is folded");
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return bad_request("a header line has no colon");
  const std::string_view name = line.substr(0, colon);
  if (!is_token(name)) return bad_request("a header name is not a token");
  if (!std::all_of(line.begin() + static_cast<std::ptrdiff_t>(colon), line.end(), is_value_character)) {
    return bad_request("a header value has a control character");
  }
  const std::string_view value = trim_whitespace(line.substr(colon + 1));
  if (equals_ignoring_case(name, "content-length")) {
    ++framing.content_lengths;
    return screen_content_length(value);
  }
  if (equals_ignoring_case(name, "transfer-encoding")) {
    ++framing.transfer_encodings;
    if (!equals_ignoring_case(value, "chunked")) {
      return Refusal{501, "transfer-coding-not-supported", "the only transfer coding served is chunked"};
    }
  }
  if (equals_ignoring_case(name, "host")) {
    ++framing.hosts;
    if (!std::all_of(value.begin(), value.end(), is_host_character)) return bad_request("Host is not a host and port");
  }
  return std::nullopt;
}

std::optional<Refusal> screen_framing(const Framing& framing, bool http_1_0) {
  if (framing.content_lengths > 1) return bad_request("Content-Length is given more than once");
  if (framing.transfer_encodings > 1) return bad_request("Transfer-Encoding is given more than once");
  if (framing.content_lengths > 0 && framing.transfer_encodings > 0) {
    return bad_request("both Content-Length and Transfer-Encoding are given");
  }
  if (framing.transfer_encodings > 0 && http_1_0) return bad_request("HTTP/1.0 has no Transfer-Encoding");
  if (framing.hosts > 1) return bad_request("Host is given more than once");
  if (framing.hosts == 0 && !http_1_0) return bad_request("Host is missing");
  return std::nullopt;
}

}  // namespace

std::string_view trim_whitespace(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) == lower(y); });
}

HeadScan scan_head(std::string_view received, std::size_t scanned, const Limits& limits) {
  if (!received.empty() && !is_token_character(received.front())) {
    return {0, bad_request("the first byte is not that of an HTTP method (is this TLS?)")};
  }
  for (std::size_t i = received.find('\n', scanned); i != std::string_view::npos; i = received.find('\n', i + 1)) {
    if (i == 0 || received[i - 1] != '\r') return {0, bad_request("a line ends without a carriage return")};
    if (i < 3 || received[i - 2] != '\n') continue;
    if (i + 1 > limits.head_bytes) break;
    return {i + 1, std::nullopt};
  }
  if (received.size() > limits.request_line_bytes &&
      received.substr(0, limits.request_line_bytes + 2).find('\n') == std::string_view::npos) {
    return {0, Refusal{414, "request-line-too-long",
                       "the request line is over " + std::to_string(limits.request_line_bytes) + " bytes"}};
  }
  if (received.size() > limits.head_bytes) {
    return {0, Refusal{431, "headers-too-large", "the head is over " + std::to_string(limits.head_bytes) + " bytes"}};
  }
  return {};
}

std::optional<Refusal> screen_head(std::string_view head, const Limits& limits) {
  const std::size_t line_end = head.find("\r\n");
  const std::string_view request_line = head.substr(0, line_end);
  if (auto refusal = screen_request_line(request_line, limits)) return refusal;
  Framing framing;
  std::size_t count = 0;
  std::string_view rest = head.substr(line_end + 2);
  while (rest != "\r\n") {
    const std::size_t end = rest.find("\r\n");
    if (++count > limits.header_count) {
      return Refusal{431, "too-many-headers", "more than " + std::to_string(limits.header_count) + " headers"};
    }
    if (auto refusal = screen_header(rest.substr(0, end), framing)) return refusal;
    rest.remove_prefix(end + 2);
  }
  return screen_framing(framing, request_line.back() == '0');
}

}  // namespace berth::http
