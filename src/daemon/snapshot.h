#pragma once
// The content of a checkpoint, and how a log is folded on top of it.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "billing/meter.h"
#include "model/event.h"
#include "state/state.h"
#include "store/log.h"

namespace berth::daemon {

std::string save_snapshot(const state::State& state, const billing::Meter& meter);

struct Snapshot {
  state::State state;
  billing::Meter meter;
};
// Of a snapshot, one without the other.
Result<state::State> load_state(std::string_view bytes);
Result<billing::Meter> load_meter(std::string_view bytes);
Result<Snapshot> load_snapshot(std::string_view bytes);

// Reads every event after `from` and passes them on in batches.
Result<void> replay(const store::Log& log, Seq from, const std::function<void(std::vector<EventRecord>)>& batch);

}  // namespace berth::daemon
