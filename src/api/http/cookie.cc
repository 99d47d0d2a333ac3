#include "api/http/cookie.h"

#include <algorithm>

#include "api/http/screen.h"

namespace berth::http {

std::string_view cookie_named(std::string_view header, std::string_view name) {
  std::string_view value;
  int found = 0;
  while (!header.empty()) {
    const std::size_t end = std::min(header.find(';'), header.size());
    const std::string_view pair = trim_whitespace(header.substr(0, end));
    header.remove_prefix(std::min(end + 1, header.size()));
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos || pair.substr(0, equals) != name) continue;
    value = pair.substr(equals + 1);
    ++found;
  }
  return found == 1 ? value : std::string_view();
}

}  // namespace berth::http
