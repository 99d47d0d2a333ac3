#include "sim/simulate/replay_log.h"

#include <array>
#include <cstdint>
#include <cstdio>
#include <optional>

#include "sim/simulate/trial_config.h"
#include "sim/world/replay.h"
#include "store/durable_log.h"

namespace berth::sim {

namespace {

std::string in_hex(std::uint64_t hash) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(hash));
  return text.data();
}

std::string count_of(std::uint64_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

}  // namespace

Result<std::string> replay_directory(const std::string& directory, const std::string& config) {
  std::optional<SchedulingConfig> knobs;
  if (!config.empty()) {
    auto trial = read_trial_config(config);
    if (!trial) return trial.error();
    knobs = trial->policy.scheduling;
  }
  auto log = store::open_log_read_only(directory);
  if (!log) return log.error();
  if ((*log)->first_seq() > 1) {
    return Error{ErrorCode::kUnsupported,
                 directory + ": the log's beginning was cut off; its states are not all known"};
  }
  const Replay again = replay(**log, knobs);
  if (again.difference && again.differing == 0) return Error{ErrorCode::kCorrupt, directory + ": " + *again.difference};
  std::string text = "replayed  " + directory + ": " + count_of(again.cycles, "cycle") + " that decided something\n";
  text += "decided   " + in_hex(again.logged_hash) + "  as it is in the log\n";
  text += "decided   " + in_hex(again.decided_hash) + "  " +
          (config.empty() ? "run again" : "run again under the scheduling of " + config) + "\n";
  if (again.differing == 0) return text + "The decisions are the same.\n";
  text += count_of(again.differing, "cycle") + (again.differing == 1 ? " decides" : " decide") +
          " something else; the first: " + *again.difference + "\n";
  if (config.empty()) return Error{ErrorCode::kCorrupt, directory + ": " + *again.difference};
  return text;
}

}  // namespace berth::sim
