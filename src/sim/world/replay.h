#pragma once
// P7: the same log gives the same decisions. A log is folded from its first event on. Wherever a cycle decided
// something, the cycle is run again, and its plan must have the hash in the log (model/event.h, CycleRan). The hash
// chain of the log covers those hashes. So if two builds of berth end with the same head hash, they have decided the
// same, bit for bit.

#include <cstdint>
#include <optional>
#include <string>

#include "store/log.h"

namespace berth::sim {

struct Replay {
  std::uint64_t cycles = 0;               // cycles that decided something and were run again
  std::optional<std::string> difference;  // the first difference, or nothing
};

// Replays a log of the simulated world. Requires: its first record is still there.
Replay replay(const store::Log& log);

}  // namespace berth::sim
