#include "base/utf8.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace berth {
namespace {

// Returns the number of bytes of the character at the front of the text, or 0 if there is none (RFC 3629, section 4:
// the table of byte sequences).
std::size_t character_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto tail = [&](std::size_t i) { return byte(i) >= 0x80 && byte(i) <= 0xbf; };
  const unsigned lead = byte(0);
  const unsigned second = byte(1);
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead <= 0xdf) return tail(1) ? 2 : 0;
  if (lead >= 0xe0 && lead <= 0xef) {
    const bool overlong = lead == 0xe0 && second < 0xa0;
    const bool surrogate = lead == 0xed && second > 0x9f;
    return tail(1) && tail(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (lead >= 0xf0 && lead <= 0xf4) {
    const bool overlong = lead == 0xf0 && second < 0x90;
    const bool beyond = lead == 0xf4 && second > 0x8f;
    return tail(1) && tail(2) && tail(3) && !overlong && !beyond ? 4 : 0;
  }
  return 0;
}

// Returns the code point of a valid character of that many bytes.
std::uint32_t code_point(std::string_view character) {
  constexpr std::array<unsigned, 5> kLeadBits = {0, 0x7f, 0x1f, 0x0f, 0x07};
  std::uint32_t code = static_cast<unsigned char>(character[0]) & kLeadBits[character.size()];
  for (const char tail : character.substr(1)) code = code << 6 | (static_cast<unsigned char>(tail) & 0x3fU);
  return code;
}

struct CodeRange {
  std::uint32_t first;
  std::uint32_t last;
};

template <std::size_t N>
bool is_in(const std::array<CodeRange, N>& ranges, std::uint32_t code) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](const CodeRange& range) { return code >= range.first && code <= range.last; });
}

// Controls (C0, DEL, C1), the separators of lines and paragraphs, and what turns the direction of writing.
constexpr std::array<CodeRange, 5> kNotOnOneLine = {
    {{0, 0x1f}, {0x7f, 0x9f}, {0x2028, 0x2029}, {0x202a, 0x202e}, {0x2066, 0x2069}}};

// Blanks and invisible characters, besides those.
constexpr std::array<CodeRange, 20> kNotVisible = {
    {{0x20, 0x20},     {0xa0, 0xa0},     {0xad, 0xad},     {0x34f, 0x34f},   {0x61c, 0x61c},
     {0x115f, 0x1160}, {0x1680, 0x1680}, {0x17b4, 0x17b5}, {0x180b, 0x180f}, {0x2000, 0x200f},
     {0x202f, 0x202f}, {0x205f, 0x206f}, {0x2800, 0x2800}, {0x3000, 0x3000}, {0x3164, 0x3164},
     {0xfe00, 0xfe0f}, {0xfeff, 0xfeff}, {0xffa0, 0xffa0}, {0xfff0, 0xfffb}, {0xe0000, 0xe0fff}}};

}  // namespace

std::size_t first_not_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = character_length(text.substr(at));
    if (length == 0) return at;
    at += length;
  }
  return std::string_view::npos;
}

bool is_plain_line(std::string_view text) {
  bool visible = false;
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    if (length == 0) return false;
    const std::uint32_t code = code_point(text.substr(0, length));
    if (is_in(kNotOnOneLine, code)) return false;
    visible = visible || !is_in(kNotVisible, code);
    text.remove_prefix(length);
  }
  return visible;
}

}  // namespace berth
