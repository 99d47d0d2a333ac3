#include "kube/denial.h"

#include <algorithm>
#include <array>
#include <string>

namespace berth::kube {
namespace {

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// What the authorizer, and no admission, says: User "x" cannot create resource "pods/binding" in API group "".
bool lacks_a_right(std::string_view body) {
  constexpr std::array<std::string_view, 2> kVerbs{"create", "patch"};
  return std::any_of(kVerbs.begin(), kVerbs.end(), [&](std::string_view verb) {
    return contains(body, "cannot " + std::string(verb) + " resource");
  });
}

}  // namespace

bool is_denied_for_now(int status, std::string_view body) {
  if (status != 403) return false;
  return lacks_a_right(body) || contains(body, "not yet ready to handle request") ||  // any plugin that keeps a cache
         contains(body, "status unknown for quota") ||                                // not counted yet
         contains(body, "error looking up service account");                          // of a namespace that is new
}

}  // namespace berth::kube
