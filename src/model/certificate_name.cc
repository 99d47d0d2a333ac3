#include "model/certificate_name.h"

#include <algorithm>

namespace berth {

bool well_formed_certificate_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxCertificateName &&
         std::all_of(name.begin(), name.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}

}  // namespace berth
