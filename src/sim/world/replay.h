#pragma once
// P7: the same log gives the same decisions. A log is folded from its first event on. Wherever a cycle decided
// something, the cycle is run again, and its plan must have the hash in the log (model/event.h, CycleRan). The hash
// chain of the log covers those hashes. So if two builds of berth end with the same head hash, they have decided the
// same, bit for bit.

#include <cstdint>
#include <optional>
#include <string>

#include "model/cluster_config.h"
#include "store/log.h"

namespace berth::sim {

struct Replay {
  std::uint64_t cycles = 0;               // cycles that decided something and were run again
  std::uint64_t differing = 0;            // of these: decided something else
  std::uint64_t logged_hash = 0;          // over the hashes of all plans in the log, in their order
  std::uint64_t decided_hash = 0;         // over those of the cycles that were run again
  std::optional<std::string> difference;  // the first difference, or an event that cannot be read
};

// Replays a log. With `scheduling` each cycle runs under these knobs instead of those that were configured, on the
// state as it was: what follows are the events of the log in any case, so a cycle that differs changes no later one.
// Requires: its first record is still there.
Replay replay(const store::Log& log, const std::optional<SchedulingConfig>& scheduling = std::nullopt);

}  // namespace berth::sim
