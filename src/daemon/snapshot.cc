#include "daemon/snapshot.h"

#include <utility>

#include "base/codec.h"
#include "store/event_codec.h"

namespace berth::daemon {

namespace {

constexpr std::size_t kReplayBatch = 4096;

// The bytes of a checkpoint, parted but not yet read.
struct Parts {
  std::string state;
  std::string meter;
};

Result<Parts> parts_of(std::string_view bytes) {
  Decoder in(bytes);
  Parts parts;
  in.get(parts.state);
  in.get(parts.meter);
  if (!in.ok() || !in.at_end()) return Error{ErrorCode::kCorrupt, "the checkpoint does not decode"};
  return parts;
}

}  // namespace

std::string save_snapshot(const state::State& state, const billing::Meter& meter) {
  Encoder out;
  out.put(state.save());
  out.put(meter.save());
  return out.take();
}

Result<state::State> load_state(std::string_view bytes) {
  const auto parts = parts_of(bytes);
  if (!parts) return parts.error();
  return state::State::load(parts->state);
}

Result<billing::Meter> load_meter(std::string_view bytes) {
  const auto parts = parts_of(bytes);
  if (!parts) return parts.error();
  return billing::Meter::load(parts->meter);
}

Result<Snapshot> load_snapshot(std::string_view bytes) {
  const auto parts = parts_of(bytes);
  if (!parts) return parts.error();
  auto state = state::State::load(parts->state);
  if (!state) return state.error();
  auto meter = billing::Meter::load(parts->meter);
  if (!meter) return meter.error();
  return Snapshot{std::move(*state), std::move(*meter)};
}

Result<void> replay(const store::Log& log, Seq from, const std::function<void(std::vector<EventRecord>)>& batch) {
  std::vector<EventRecord> events;
  auto done = log.read(from, [&](const store::Record& record) -> Result<bool> {
    auto event = store::to_event(record);
    if (!event) return event.error();
    events.push_back(std::move(*event));
    if (events.size() == kReplayBatch) batch(std::exchange(events, {}));
    return true;
  });
  if (!done) return done;
  if (!events.empty()) batch(std::move(events));
  return {};
}

}  // namespace berth::daemon
