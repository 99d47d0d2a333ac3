#pragma once
// A month of UTC: what is billed together.

#include <optional>
#include <string>
#include <string_view>

#include "base/timestamp.h"

namespace berth {

struct Month {
  std::string name;  // such as 2026-11
  Timestamp begin;
  Timestamp end;  // the begin of the next one
};

// Reads "2026-11". Returns nothing for other text, or a year outside 1970 to 9998.
std::optional<Month> month_of(std::string_view name);
// Returns the month in which the time lies. Requires a time from 1970 to 9998.
Month month_at(Timestamp time);

}  // namespace berth
