#include "daemon/snapshot.h"

#include <utility>

#include "base/codec.h"
#include "store/event_codec.h"

namespace berth::daemon {

namespace {

constexpr std::size_t kReplayBatch = 4096;

}  // namespace

std::string save_snapshot(const state::State& state, const billing::Meter& meter) {
  Encoder out;
  out.put(state.save());
  out.put(meter.save());
  return out.take();
}

Result<state::State> load_state(std::string_view bytes) {
  Decoder in(bytes);
  std::string state_bytes;
  in.get(state_bytes);
  if (!in.ok()) return Error{ErrorCode::kCorrupt, "the checkpoint does not decode"};
  return state::State::load(state_bytes);
}

Result<billing::Meter> load_meter(std::string_view bytes) {
  Decoder in(bytes);
  std::string state_bytes;
  std::string meter_bytes;
  in.get(state_bytes);
  in.get(meter_bytes);
  if (!in.ok() || !in.at_end()) return Error{ErrorCode::kCorrupt, "the checkpoint does not decode"};
  return billing::Meter::load(meter_bytes);
}

Result<Snapshot> load_snapshot(std::string_view bytes) {
  Decoder in(bytes);
  std::string state_bytes;
  std::string meter_bytes;
  in.get(state_bytes);
  in.get(meter_bytes);
  if (!in.ok() || !in.at_end()) return Error{ErrorCode::kCorrupt, "the checkpoint does not decode"};
  auto state = state::State::load(state_bytes);
  if (!state) return state.error();
  auto meter = billing::Meter::load(meter_bytes);
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
