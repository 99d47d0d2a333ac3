#pragma once
// Cookies of a request (RFC 6265). Pure.

#include <string_view>

namespace berth::http {

// Returns the value of the cookie with this name in a Cookie header; empty if it is absent or there are two, for then
// one of them was put there by someone else.
std::string_view cookie_named(std::string_view header, std::string_view name);

}  // namespace berth::http
