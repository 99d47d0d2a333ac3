#pragma once
// What a token says of its bearer, once its signature is proved: who it is, for whom the token was made, and how long
// it is good. Pure; time is an argument.

#include <boost/json/object.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/timestamp.h"
#include "identity/issuer.h"

namespace berth::identity {

struct Identity {
  std::string user;                 // ISSUER:NAME
  std::vector<std::string> groups;  // each ISSUER:NAME, sorted
  std::string issuer = {};          // the issuer's name
  std::optional<Timestamp> issued;  // `iat`
  Timestamp ends = {};              // `exp` and the clock skew: no longer good then
  bool operator==(const Identity&) const = default;
};

// Returns the identity, or which claim is missing or wrong. Requires claims signed by the issuer.
Result<Identity> check_claims(const boost::json::object& claims, const Issuer& issuer, Timestamp now);

}  // namespace berth::identity
