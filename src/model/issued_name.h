#pragma once
// Names that an issuer of the cluster states (docs/sign-in.md): `ISSUER:NAME`, such as corp:ada@example.com. The name
// of the issuer is the operator's, so the same NAME of two issuers is two names.

#include <cstddef>
#include <string>
#include <string_view>

namespace berth {

inline constexpr std::size_t kMaxIssuedName = 189;  // with an issuer in front it fits the user of a job
inline constexpr std::string_view kIssuedNameRule =
    "use 1-189 bytes of UTF-8 without control characters, and no space at either end";

// Returns true if an issuer may state this NAME.
bool well_formed_issued_name(std::string_view name);

// Returns true for `ISSUER:NAME`, both well formed.
bool well_formed_issued_subject(std::string_view subject);

}  // namespace berth
