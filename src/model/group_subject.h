#pragma once
// Groups as subjects of roles. Only the token of an issuer says which groups a user is in, and those are
// group:ISSUER:NAME. So no request ever comes from a group without an issuer, group:NAME.

#include <string_view>

namespace berth {

// Returns true for a group without an issuer.
inline bool is_group_of_nobody(std::string_view subject) {
  constexpr std::string_view kGroup = "group:";
  return subject.starts_with(kGroup) && subject.find(':', kGroup.size()) == std::string_view::npos;
}

inline constexpr std::string_view kGroupRule =
    "nobody is ever in this group: groups come from an issuer, as group:ISSUER:NAME (`berth whoami` shows them)";

}  // namespace berth
