#pragma once
// Random: a small seeded generator (xoshiro256**, Blackman and Vigna 2018, seeded by SplitMix64). Unlike the
// distributions of <random> it gives equal numbers with every compiler and library, so a seed identifies a run for
// ever.

#include <array>
#include <cstdint>
#include <vector>

#include "base/check.h"

namespace berth {

__extension__ using Uint128 = unsigned __int128;

class Random {
 public:
  explicit Random(std::uint64_t seed) {
    for (auto& word : words_) {
      seed += 0x9e3779b97f4a7c15ULL;
      std::uint64_t z = seed;
      z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
      z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
      word = z ^ (z >> 31U);
    }
  }

  std::uint64_t next() {
    const std::uint64_t result = rotate(words_[1] * 5, 7) * 9;
    const std::uint64_t shifted = words_[1] << 17U;
    words_[2] ^= words_[0];
    words_[3] ^= words_[1];
    words_[1] ^= words_[2];
    words_[0] ^= words_[3];
    words_[2] ^= shifted;
    words_[3] = rotate(words_[3], 45);
    return result;
  }

  // Returns a uniform number in [0, bound). Requires bound > 0. Lemire's multiply-shift; the bias is below 2^-64 *
  // bound.
  std::uint64_t below(std::uint64_t bound) {
    BERTH_CHECK(bound > 0);
    return static_cast<std::uint64_t>((Uint128{next()} * bound) >> 64U);
  }
  // Returns a uniform number in [low, high], both ends included.
  std::int64_t between(std::int64_t low, std::int64_t high) {
    BERTH_CHECK(low <= high);
    return low + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(high - low) + 1));
  }
  // Returns true with a probability of `per_mille` in a thousand.
  bool chance(std::uint64_t per_mille) { return below(1000) < per_mille; }
  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[below(from.size())];
  }

 private:
  static std::uint64_t rotate(std::uint64_t value, unsigned by) { return (value << by) | (value >> (64U - by)); }
  std::array<std::uint64_t, 4> words_{};
};

}  // namespace berth
