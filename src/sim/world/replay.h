#pragma once
// P7: the same log, the same decisions. A log is folded from its first event on, and wherever a cycle decided something
// it is asked again: its plan must have the hash that the log holds (model/event.h, CycleRan). Since the log's own hash
// chain covers those hashes, two builds of berth that end with the same head hash have decided the same, bit for bit.

#include <cstdint>
#include <optional>
#include <string>

#include "store/log.h"

namespace berth::sim {

struct Replay {
  std::uint64_t cycles = 0;               // that decided something, and were asked again
  std::optional<std::string> difference;  // the first
};

// Of a log of the simulated world, which has its first record still.
Replay replay(const store::Log& log);

}  // namespace berth::sim
