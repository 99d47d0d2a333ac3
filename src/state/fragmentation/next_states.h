#pragma once
// What was found for keys of 64 bits that are asked for again and again: the states that nodes are in after a request.
// Open addressing with linear probing (Knuth, TAOCP 3, 6.4, algorithm L) in one array, because a look-up that misses
// the caches twice was the dearest step of a score. Looked up by key, never walked, so no order shows.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/hash.h"

namespace berth::state::fragmentation {

class NextStates {
 public:
  // What was put in under the key, or nothing.
  const std::uint32_t* find(std::uint64_t key) const {
    if (slots_.empty()) return nullptr;
    const Slot& slot = slots_[place_of(key)];
    return slot.used ? &slot.id : nullptr;
  }
  // Precondition: nothing is there under the key.
  void insert(std::uint64_t key, std::uint32_t id) {
    if (2 * (size_ + 1) > slots_.size()) grow();
    slots_[place_of(key)] = {key, id, true};
    ++size_;
  }
  std::size_t size() const { return size_; }

 private:
  struct Slot {
    std::uint64_t key = 0;
    std::uint32_t id = 0;
    bool used = false;
  };

  // Where the key is, or would be put. There is always a free slot.
  std::size_t place_of(std::uint64_t key) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t place = Hasher().add(key).digest() & mask;
    while (slots_[place].used && slots_[place].key != key) place = (place + 1) & mask;
    return place;
  }
  void grow() {
    const std::vector<Slot> before = std::exchange(slots_, std::vector<Slot>(slots_.empty() ? 64 : 2 * slots_.size()));
    for (const Slot& slot : before) {
      if (slot.used) slots_[place_of(slot.key)] = slot;
    }
  }

  std::vector<Slot> slots_;  // a power of two, or none; at most half of them used
  std::size_t size_ = 0;
};

}  // namespace berth::state::fragmentation
