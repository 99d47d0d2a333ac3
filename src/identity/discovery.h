#pragma once
// How the keys of an issuer are got: from the file or address that the operator gives, else by OpenID Connect Discovery
// 1.0: the document at URL/.well-known/openid-configuration names the issuer itself and the address of its keys.

#include <boost/json/object.hpp>
#include <functional>
#include <string>

#include "base/result.h"
#include "identity/issuer.h"
#include "identity/key_set.h"

namespace berth::identity {

// Returns the body of the answer to a GET.
using Get = std::function<Result<std::string>(const std::string& url)>;

// The discovery document of the issuer, which must be its own.
Result<boost::json::object> discover(const Issuer& issuer, const Get& get);

Result<KeySet> load_keys(const Issuer& issuer, const Get& get);

}  // namespace berth::identity
