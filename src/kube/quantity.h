#pragma once
// Quantities of Kubernetes: "500m", "2", "1.5Gi", "1e3", as its API reference ("Quantity") states them.

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace berth::kube {

// Returns the quantity in thousandths, rounded up. Error: it is no quantity, is negative, or is over 2^50.
Result<std::int64_t> milli_of(std::string_view quantity);
// Returns a quantity of bytes in MiB, rounded up. Errors as above, over 2^40 MiB.
Result<std::int64_t> mib_of(std::string_view quantity);
// Returns a quantity of whole things. Errors as above; also: it is no whole number, or over a million.
Result<std::int64_t> whole_of(std::string_view quantity);
// Returns true if both are quantities of the same value, such as 1 and 1000m, whatever their size.
bool is_same_quantity(std::string_view a, std::string_view b);

}  // namespace berth::kube
