#pragma once
// Names of client certificates, as subjects of roles have them behind `cert:` : a SPIFFE id, or the common name.

#include <cstddef>
#include <string_view>

namespace berth {

inline constexpr std::string_view kSpiffeScheme = "spiffe://";
inline constexpr std::size_t kMaxCertificateName = 248;  // with `cert:` in front it fits the user of a job
inline constexpr std::string_view kCertificateNameRule =
    "a certificate's name has 1-248 visible ASCII characters, such as spiffe://corp.example/ci or worker-7";

bool well_formed_certificate_name(std::string_view name);

}  // namespace berth
