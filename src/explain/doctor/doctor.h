#pragma once
// The production checklist, line by line, on the running cluster (docs/doctor.md). It decides nothing, and looks only
// at the state and at what the server says of itself, so equal arguments give equal findings.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/timestamp.h"
#include "model/diagnosis.h"
#include "state/state.h"

namespace berth::explain {

// What the server knows of itself and its surroundings.
struct DoctorFacts {
  bool on_network = false;  // it listens on more than the loopback addresses of its machine
  bool has_tls = false;
  bool runs_tasks = true;  // tasks run on this machine: neither Kubernetes nor no node
  bool kubernetes = false;
  bool tasks_kept_apart = true;
  bool gpus_checked = true;  // no task starts on a dirty GPU
  bool measures_gpus = false;
  std::string log_check;  // running, sound, unfinished
  bool log_end_known = true;
  std::int64_t wall_offset_ms = 0;
  bool follows_wall = true;
  std::string backups_to;  // empty: it makes none
  std::int64_t backups_every_s = 0;
  std::optional<Timestamp> last_backup;
  std::string backup_warning;                  // why the last one failed
  std::map<std::string, Timestamp> token_use;  // when each token was last used, by its digest
};

// All checks, in the order of the areas.
std::vector<Finding> examine(const state::State& state, const DoctorFacts& facts, Timestamp now);

}  // namespace berth::explain
