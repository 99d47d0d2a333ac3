#pragma once
// The range of priorities: of a priority class in the configuration, and of one that an operator gives a job.

#include <cstdint>

namespace berth {

inline constexpr std::int32_t kLeastPriority = -1'000'000;
inline constexpr std::int32_t kMostPriority = 1'000'000'000;

}  // namespace berth
