#include "cli/printable.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>

namespace berth::cli {
namespace {

struct Character {
  std::uint32_t point = 0;
  std::size_t length = 1;
  bool valid = false;
};

bool continues(std::string_view text, std::size_t at) {
  return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0U) == 0x80U;
}

// The character at the head of `text`, which is not empty; RFC 3629.
Character first_character(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  if (lead < 0x80) return {lead, 1, true};
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4) return {};
  std::uint32_t point = lead & (0xffU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if (!continues(text, i)) return {};
    point = (point << 6U) | (static_cast<unsigned char>(text[i]) & 0x3fU);
  }
  constexpr std::array<std::uint32_t, 5> kLeast{0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = point >= 0xd800 && point <= 0xdfff;
  if (point < kLeast.at(length) || point > 0x10ffff || surrogate) return {};
  return {point, length, true};
}

struct Range {
  std::uint32_t first;
  std::uint32_t last;
};

template <std::size_t N>
bool within(std::uint32_t point, const std::array<Range, N>& ranges) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [point](const Range& range) { return point >= range.first && point <= range.last; });
}

// Controls C0 and C1, and what Unicode calls format characters: soft hyphen, zero width, marks and overrides of
// direction (UTS 36, section 3.1), line and paragraph separators, tags.
constexpr std::array kUnsafe{Range{0x00, 0x1f},     Range{0x7f, 0x9f},      Range{0xad, 0xad},
                             Range{0x61c, 0x61c},   Range{0x180e, 0x180e},  Range{0x200b, 0x200f},
                             Range{0x2028, 0x202e}, Range{0x2060, 0x206f},  Range{0xfeff, 0xfeff},
                             Range{0xfff9, 0xfffb}, Range{0xe0000, 0xe0fff}};

constexpr std::array kCombining{
    Range{0x300, 0x36f},   Range{0x483, 0x489},   Range{0x591, 0x5bd},   Range{0x610, 0x61a},   Range{0x64b, 0x65f},
    Range{0x1ab0, 0x1aff}, Range{0x1dc0, 0x1dff}, Range{0x20d0, 0x20ff}, Range{0xfe00, 0xfe0f}, Range{0xfe20, 0xfe2f}};

constexpr std::array kWide{Range{0x1100, 0x115f},   Range{0x2e80, 0x303e},  Range{0x3041, 0x33ff},
                           Range{0x3400, 0x4dbf},   Range{0x4e00, 0x9fff},  Range{0xa000, 0xa4cf},
                           Range{0xac00, 0xd7a3},   Range{0xf900, 0xfaff},  Range{0xfe30, 0xfe6f},
                           Range{0xff00, 0xff60},   Range{0xffe0, 0xffe6},  Range{0x1f300, 0x1f64f},
                           Range{0x1f900, 0x1f9ff}, Range{0x20000, 0x3fffd}};

std::size_t width_of(std::uint32_t point) {
  if (within(point, kCombining)) return 0;
  return within(point, kWide) ? 2 : 1;
}

void append_escape(std::uint32_t point, std::string& out) {
  if (point == '\n' || point == '\t' || point == '\r') {
    out += point == '\n' ? "\\n" : point == '\t' ? "\\t" : "\\r";
    return;
  }
  std::array<char, 16> escape{};
  std::snprintf(escape.data(), escape.size(), point <= 0xff ? "\\x%02x" : "\\u%04x", point);
  out += escape.data();
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const Character next = first_character(text);
    if (!next.valid) {
      append_escape(static_cast<unsigned char>(text.front()), out);
    } else if (within(next.point, kUnsafe)) {
      append_escape(next.point, out);
    } else {
      out += text.substr(0, next.length);
    }
    text.remove_prefix(next.length);
  }
  return out;
}

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const Character next = first_character(text);
    width += next.valid ? width_of(next.point) : 1;
    text.remove_prefix(next.length);
  }
  return width;
}

std::string shorten(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) return std::string(text);
  std::size_t used = 1;  // the ellipsis
  std::size_t bytes = 0;
  while (bytes < text.size()) {
    const Character next = first_character(text.substr(bytes));
    used += width_of(next.point);
    if (used > width) break;
    bytes += next.length;
  }
  return std::string(text.substr(0, bytes)) + "…";
}

std::string shorten_front(std::string_view text, std::size_t width) {
  std::size_t left = display_width(text);
  if (left <= width) return std::string(text);
  while (left + 1 > width && !text.empty()) {
    const Character next = first_character(text);
    left -= next.valid ? width_of(next.point) : 1;
    text.remove_prefix(next.length);
  }
  const std::size_t slash = text.find('/');
  if (slash != std::string_view::npos && slash + 1 < text.size()) text.remove_prefix(slash);
  return "…" + std::string(text);
}

}  // namespace berth::cli
