#pragma once
// Integer arithmetic that does not overflow silently. Decisions and bills use integers only, and an overflow would make
// them wrong. The checked_ functions stop the process on overflow. The try_ functions return nothing; use them for
// numbers from outside.

#include <cstdint>
#include <optional>

#include "base/check.h"

namespace berth {

__extension__ using Int128 = __int128;

inline std::optional<std::int64_t> try_add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}
inline std::optional<std::int64_t> try_multiply(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}
inline std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  BERTH_CHECK(!__builtin_add_overflow(a, b, &sum));
  return sum;
}
inline std::int64_t checked_subtract(std::int64_t a, std::int64_t b) {
  std::int64_t difference = 0;
  BERTH_CHECK(!__builtin_sub_overflow(a, b, &difference));
  return difference;
}
inline std::int64_t checked_multiply(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  BERTH_CHECK(!__builtin_mul_overflow(a, b, &product));
  return product;
}

// A non-negative fraction, compared exactly by 128-bit cross-multiplication. A zero denominator with a positive
// numerator is infinite; 0/0 counts as 0.
struct Fraction {
  std::int64_t numerator = 0;
  std::int64_t denominator = 1;

  bool infinite() const { return denominator == 0 && numerator > 0; }
};

// Returns -1, 0 or 1 if `a` is less than, equal to or greater than `b`.
inline int compare(const Fraction& a, const Fraction& b) {
  if (a.infinite() || b.infinite()) return static_cast<int>(a.infinite()) - static_cast<int>(b.infinite());
  const Int128 left = Int128{a.numerator} * (b.denominator == 0 ? 1 : b.denominator);
  const Int128 right = Int128{b.numerator} * (a.denominator == 0 ? 1 : a.denominator);
  if (left == right) return 0;
  return left < right ? -1 : 1;
}
inline bool operator<(const Fraction& a, const Fraction& b) { return compare(a, b) < 0; }
inline bool operator==(const Fraction& a, const Fraction& b) { return compare(a, b) == 0; }

}  // namespace berth
