#pragma once
// A 64-bit hash over bytes and integers, for state and decision hashes. It is equal on every machine. It is not safe
// for keys from outside, and no protection against tampering (the event log chains SHA-256 for that).

#include <cstdint>
#include <string_view>

namespace berth {

class Hasher {
 public:
  Hasher& add(std::uint64_t value) {
    state_ ^= value;
    state_ *= 0xff51afd7ed558ccdULL;
    state_ ^= state_ >> 32U;
    return *this;
  }
  Hasher& add(std::string_view bytes) {
    add(static_cast<std::uint64_t>(bytes.size()));
    std::uint64_t word = 0;
    unsigned filled = 0;
    for (const char byte : bytes) {
      word = (word << 8U) | static_cast<unsigned char>(byte);
      if (++filled == 8) {
        add(word);
        word = 0;
        filled = 0;
      }
    }
    if (filled > 0) add(word);
    return *this;
  }
  std::uint64_t digest() const { return state_; }

 private:
  std::uint64_t state_ = 0x243f6a8885a308d3ULL;
};

}  // namespace berth
