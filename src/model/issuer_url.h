#pragma once
// Addresses of an identity provider and its documents.

#include <string>
#include <string_view>

namespace berth {

// Returns why tokens and keys must not travel to and from this address, or nothing. Allowed are https, and http on this
// machine.
std::string flaw_of_issuer_url(std::string_view url);

}  // namespace berth
