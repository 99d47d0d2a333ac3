#pragma once
// Checks of a launch. Returns an error if it could never work.

#include <cstdint>

#include "base/result.h"
#include "executor/task.h"

namespace berth::executor {

inline constexpr std::int64_t kLongestMs = std::int64_t{100} * 365 * 24 * 3600 * 1000;  // a hundred years

Result<void> check_launch(const TaskLaunch& launch);

}  // namespace berth::executor
