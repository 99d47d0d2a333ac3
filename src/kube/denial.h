#pragma once
// Refusals of an API server that has just started: it has not read its roles, or what admission needs, and refuses what
// it will allow some seconds later.

#include <cstdint>
#include <string_view>

namespace berth::kube {

// A refusal of this kind that lasts as long is believed.
inline constexpr std::int64_t kDenialMs = 60'000;

// Returns true if the answer is a refusal which may be over in a moment. It may also be for ever: that a user lacks a
// right looks the same.
bool is_denied_for_now(int status, std::string_view body);

}  // namespace berth::kube
