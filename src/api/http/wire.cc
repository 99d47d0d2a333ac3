#include "api/http/wire.h"

#include <array>
#include <ctime>

#include "api/http/stream.h"

namespace berth::http {
namespace {

// IMF-fixdate (RFC 9110, section 5.6.7), made once a second and thread: formatting a date costs as much as a request.
const std::string& date_now() {
  thread_local std::time_t formatted = 0;
  thread_local std::string text;
  const std::time_t now = std::time(nullptr);
  if (now == formatted) return text;
  static constexpr std::array kDays{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr std::array kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> day;
  std::array<char, 32> time;
  std::strftime(day.data(), day.size(), ", %d ", &parts);
  std::strftime(time.data(), time.size(), " %Y %H:%M:%S GMT", &parts);
  text = kDays[static_cast<std::size_t>(parts.tm_wday)];
  text += day.data();
  text += kMonths[static_cast<std::size_t>(parts.tm_mon)];
  text += time.data();
  formatted = now;
  return text;
}

void append_header(std::string& text, std::string_view name, std::string_view value) {
  text += name;
  text += ": ";
  text += value;
  text += "\r\n";
}

// Nothing is kept by caches but what says so itself.
bool says_cache_control(const Response& response) {
  for (const Header& header : response.headers) {
    if (header.name == "Cache-Control") return true;
  }
  return false;
}

void append_status(std::string& text, int status, bool stored = false) {
  text += "HTTP/1.1 ";
  text += std::to_string(status);
  text += ' ';
  text += reason_phrase(status);
  text += "\r\n";
  append_header(text, "Date", date_now());
  if (!stored) append_header(text, "Cache-Control", "no-store");
  append_header(text, "X-Content-Type-Options", "nosniff");
}

bool may_have_body(int status) { return status >= 200 && status != 204 && status != 304; }

bool is_clean(std::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return false;
  }
  return true;
}

}  // namespace

bool can_be_sent(const Response& response) {
  if (!is_clean(response.content_type) || response.status < 200 || response.status > 599) return false;
  for (const Header& header : response.headers) {
    if (header.name.empty() || !is_clean(header.name) || !is_clean(header.value)) return false;
    if (header.name.find_first_of(": ") != std::string::npos) return false;
  }
  return true;
}

std::string head_to_wire(const Response& response, const WireOptions& options) {
  std::string text;
  append_status(text, response.status, says_cache_control(response));
  if (may_have_body(response.status)) {
    append_header(text, "Content-Type", response.content_type);
    append_header(text, "Content-Length", std::to_string(response.body.size()));
  }
  for (const Header& header : response.headers) append_header(text, header.name, header.value);
  append_header(text, "Connection", options.keep_alive ? "keep-alive" : "close");
  text += "\r\n";
  return text;
}

std::string to_wire(const Response& response, const WireOptions& options) {
  std::string text = head_to_wire(response, options);
  if (!options.head_only && may_have_body(response.status)) text += response.body;
  return text;
}

std::string stream_head(StreamFormat format, bool chunked) {
  std::string text;
  append_status(text, 200);
  append_header(text, "Content-Type", content_type(format));
  if (chunked) append_header(text, "Transfer-Encoding", "chunked");
  append_header(text, "Connection", "close");
  text += "\r\n";
  return text;
}

std::string to_chunk(std::string_view bytes) {
  std::array<char, 20> size;
  std::size_t digits = 0;
  for (std::size_t rest = bytes.size(); rest > 0; rest >>= 4) size[digits++] = "0123456789abcdef"[rest & 15];
  std::string text;
  text.reserve(bytes.size() + digits + 4);
  while (digits > 0) text += size[--digits];
  text += "\r\n";
  text += bytes;
  text += "\r\n";
  return text;
}

}  // namespace berth::http
