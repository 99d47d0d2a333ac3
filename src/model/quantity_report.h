#pragma once
// Bounds of reported quantities, so that a bill fits into 64 bits.

#include <cstddef>
#include <cstdint>

#include "model/price_book.h"

namespace berth {

inline constexpr std::int64_t kMostQuantity = 1'000'000'000'000;
inline constexpr std::int64_t kMostReportMicro = 10'000'000 * kMicro;  // what one report costs
inline constexpr std::size_t kMostReports = 200'000;                   // in months that are not closed

}  // namespace berth
