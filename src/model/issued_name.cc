#include "model/issued_name.h"

#include <algorithm>

#include "base/utf8.h"
#include "model/name.h"

namespace berth {

bool well_formed_issued_name(std::string_view name) {
  if (name.empty() || name.size() > kMaxIssuedName || name.front() == ' ' || name.back() == ' ') return false;
  const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  // U+0080 to U+009F are control characters, too: C2 80 to C2 9F.
  for (std::size_t i = 0; i + 1 < name.size(); ++i) {
    if (name[i] == '\xc2' && static_cast<unsigned char>(name[i + 1]) < 0xa0) return false;
  }
  return std::none_of(name.begin(), name.end(), control) && is_utf8(name);
}

bool well_formed_issued_subject(std::string_view subject) {
  const std::size_t colon = subject.find(':');
  return colon != std::string_view::npos && well_formed_name(subject.substr(0, colon)) &&
         well_formed_issued_name(subject.substr(colon + 1));
}

}  // namespace berth
