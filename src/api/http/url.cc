#include "api/http/url.h"

#include <cstdint>

namespace berth::http {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool has_control_character(std::string_view text) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) return true;
  }
  return false;
}

std::optional<std::string> decode(std::string_view text, bool plus_is_space) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_space) {
      decoded += ' ';
    } else if (text[i] != '%') {
      decoded += text[i];
    } else {
      const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
      if (high < 0 || low < 0) return std::nullopt;
      decoded += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  if (!is_valid_utf8(decoded) || has_control_character(decoded)) return std::nullopt;
  return decoded;
}

// The length of the well-formed UTF-8 sequence at the start of `text`, or 0 (Unicode 15, table 3-7).
std::size_t utf8_sequence(std::string_view text) {
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto in = [&](std::size_t i, unsigned low, unsigned high) {
    return i < text.size() && byte(i) >= low && byte(i) <= high;
  };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead < 0xc2) return 0;
  if (lead < 0xe0) return in(1, 0x80, 0xbf) ? 2 : 0;
  if (lead < 0xf0) {
    const unsigned low = lead == 0xe0 ? 0xa0 : 0x80;   // overlong
    const unsigned high = lead == 0xed ? 0x9f : 0xbf;  // surrogates
    return in(1, low, high) && in(2, 0x80, 0xbf) ? 3 : 0;
  }
  if (lead > 0xf4) return 0;
  const unsigned low = lead == 0xf0 ? 0x90 : 0x80;
  const unsigned high = lead == 0xf4 ? 0x8f : 0xbf;
  return in(1, low, high) && in(2, 0x80, 0xbf) && in(3, 0x80, 0xbf) ? 4 : 0;
}

}  // namespace

bool is_valid_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_sequence(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::optional<std::string> decode_segment(std::string_view text) { return decode(text, false); }

Result<std::multimap<std::string, std::string>> decode_query(std::string_view text) {
  std::multimap<std::string, std::string> parameters;
  std::size_t position = 0;
  while (!text.empty()) {
    ++position;
    const std::size_t end = text.find('&');
    const std::string_view pair = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (pair.empty()) continue;
    const std::size_t equals = pair.find('=');
    const auto name = decode(pair.substr(0, equals), true);
    const auto value = decode(equals == std::string_view::npos ? std::string_view() : pair.substr(equals + 1), true);
    if (!name || !value) {
      return invalid("query parameter number " + std::to_string(position) +
                     " is not percent-encoded UTF-8 without control characters");
    }
    parameters.emplace(*name, *value);
  }
  return parameters;
}

}  // namespace berth::http
