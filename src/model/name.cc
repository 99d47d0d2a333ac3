#include "model/name.h"

#include <algorithm>

namespace berth {

bool well_formed_name(std::string_view name) {
  if (name.empty() || name.size() > kMaxNameLength) return false;
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); };
  if (!plain(name.front()) || !plain(name.back())) return false;
  return std::all_of(name.begin(), name.end(), [&](char c) { return plain(c) || c == '-' || c == '_' || c == '.'; });
}

}  // namespace berth
