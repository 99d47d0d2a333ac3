#pragma once
// NextStates: a cache from a 64-bit key (node state and request) to the id of the node state after the request. Open
// addressing with linear probing (Knuth, TAOCP 3, 6.4, algorithm L) in one array: a look-up that missed the CPU caches
// twice was the most expensive step of a score. Entries are only looked up by key, so their order does not matter.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/hash.h"

namespace berth::state::fragmentation {

class NextStates {
 public:
  // Returns the value of the key, or null.
  const std::uint32_t* find(std::uint64_t key) const {
    if (slots_.empty()) return nullptr;
    const Slot& slot = slots_[place_of(key)];
    return slot.used ? &slot.id : nullptr;
  }
  // Requires that the key has no value yet.
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

  // Returns the slot of the key, or the free slot where it would go. There is always a free slot.
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

  std::vector<Slot> slots_;  // size is a power of two or zero; at most half are used
  std::size_t size_ = 0;
};

}  // namespace berth::state::fragmentation
