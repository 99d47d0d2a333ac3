// How many random instances a property is tried on.

#pragma once

#include <cstdint>
#include <cstdlib>

namespace berth {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// Returns `many` in a long run (BERTH_LONG=1), else `usual`; under a sanitizer, where an instance takes about eight
// times as long and what is looked for is in the code that all of them pass, a quarter of `usual`.
inline std::int64_t random_rounds(std::int64_t usual, std::int64_t many) {
  if (std::getenv("BERTH_LONG") != nullptr) return many;
  return kSanitized ? usual / 4 : usual;
}

}  // namespace berth
