#include "model/base64url.h"

#include <cstdint>

namespace berth {
namespace {

int value_of(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '-') return 62;
  if (c == '_') return 63;
  return -1;
}

}  // namespace

Result<std::string> decode_base64url(std::string_view text) {
  if (text.size() % 4 == 1) return invalid("a part of the token has an impossible length");
  std::string bytes;
  bytes.reserve(text.size() * 3 / 4);
  std::uint32_t bits = 0;
  unsigned count = 0;
  for (const char c : text) {
    const int value = value_of(c);
    if (value < 0) return invalid("the token has other characters than base64url");
    bits = (bits << 6U) | static_cast<std::uint32_t>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>((bits >> count) & 0xffU);
    bits &= (1U << count) - 1U;
  }
  if (bits != 0) return invalid("a part of the token has bits left over");
  return bytes;
}

}  // namespace berth
