#include "sim/report/escape.h"

#include <array>
#include <cstddef>
#include <cstdio>

#include "sim/trace/fields.h"

namespace berth::sim {
namespace {

struct CodePoint {
  std::uint32_t value = 0;
  std::string_view bytes;
};

// The first code point of valid UTF-8.
CodePoint first_code_point(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  const std::size_t size = lead < 0x80U ? 1 : lead < 0xe0U ? 2 : lead < 0xf0U ? 3 : 4;
  std::uint32_t value = size == 1 ? lead : lead & (0xffU >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) value = (value << 6U) | (static_cast<unsigned char>(text[i]) & 0x3fU);
  return {value, text.substr(0, size)};
}

// Control characters, zero-width characters, bidirectional controls, line separators, the byte order mark.
bool hides(std::uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0xad || code == 0x61c ||
         (code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
         (code >= 0x2060 && code <= 0x206f) || code == 0xfeff;
}

std::string shown(std::uint32_t code) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "[U+%04X]", static_cast<unsigned>(code));
  return text.data();
}

template <class Append>
std::string for_each_code_point(std::string_view text, Append append) {
  const std::string valid = with_valid_utf8(text);
  std::string result;
  for (std::string_view rest = valid; !rest.empty();) {
    const CodePoint code = first_code_point(rest);
    append(code, result);
    rest.remove_prefix(code.bytes.size());
  }
  return result;
}

bool looks_like_formula(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  return first != std::string_view::npos && std::string_view("=+-@\t\r\n").find(text[first]) != std::string_view::npos;
}

}  // namespace

std::string html_text(std::string_view text) {
  return for_each_code_point(text, [](const CodePoint& code, std::string& result) {
    switch (code.value) {
      case '<':
        result += "&lt;";
        return;
      case '>':
        result += "&gt;";
        return;
      case '&':
        result += "&amp;";
        return;
      case '"':
        result += "&quot;";
        return;
      case '\'':
        result += "&#39;";
        return;
      default:
        result += hides(code.value) ? shown(code.value) : std::string(code.bytes);
    }
  });
}

std::string csv_cell(std::string_view text) {
  std::string cell = looks_like_formula(text) ? "\"'" : "\"";
  for (const char c : with_valid_utf8(text)) {
    if (c == '"') cell += '"';
    if (c != '\0') cell += c;
  }
  return cell += '"';
}

std::string json_for_script(std::string_view json) {
  return for_each_code_point(json, [](const CodePoint& code, std::string& result) {
    switch (code.value) {
      case '<':
        result += "\\u003c";
        return;
      case '>':
        result += "\\u003e";
        return;
      case '&':
        result += "\\u0026";
        return;
      case 0x2028:
        result += "\\u2028";
        return;
      case 0x2029:
        result += "\\u2029";
        return;
      default:
        result += code.bytes;
    }
  });
}

std::string visible_text(std::string_view text) {
  return for_each_code_point(text, [](const CodePoint& code, std::string& result) {
    result += hides(code.value) ? shown(code.value) : std::string(code.bytes);
  });
}

}  // namespace berth::sim
