#pragma once
// Refusals of an API server that has just started: it has not read its roles, or what admission needs, and refuses what
// it will allow some seconds later.

#include <string_view>

namespace berth::kube {

// Returns true if the answer is a refusal which may be over in a moment. It may also be for ever: that a user lacks a
// right looks the same. One that lasts for Waits::denial_ms is believed.
bool is_denied_for_now(int status, std::string_view body);

}  // namespace berth::kube
