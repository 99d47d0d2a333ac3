#pragma once
// A signed token (JWT) in its compact form, taken apart: HEADER.CLAIMS.SIGNATURE. Nothing that is read here is proved:
// it says which key to check the signature with. Pure.
//
// Refused are: more than kMostTokenBytes; other characters than base64url; JSON that two readers could understand
// differently (duplicate claims); every algorithm but RS256 and ES256; `crit` and keys within the header.

#include <boost/json/object.hpp>
#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::identity {

inline constexpr std::size_t kMostTokenBytes = 16 * 1024;

enum class Algorithm { kRs256, kEs256 };

struct UnprovedToken {
  Algorithm algorithm = Algorithm::kRs256;
  std::string key_id;  // `kid`; empty: none is named
  std::string issuer;  // `iss`
  boost::json::object claims;
};

// Returns true if the text has the form of a signed token: two dots. Own tokens of berth have none.
bool looks_signed(std::string_view text);

Result<UnprovedToken> read_token(std::string_view text);

// Entry for libFuzzer: whatever is accepted keeps the rules above. Returns 0.
int fuzz_read_token(const unsigned char* data, std::size_t size);

}  // namespace berth::identity
