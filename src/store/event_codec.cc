#include "store/event_codec.h"

#include <string>
#include <variant>

#include "base/codec.h"

namespace berth::store {

namespace {

constexpr std::uint16_t kVersion = 1;

template <std::size_t I>
bool decode_alternative(Decoder& in, std::size_t kind, Event& event) {
  if constexpr (I < std::variant_size_v<Event>) {
    if (kind != I) return decode_alternative<I + 1>(in, kind, event);
    in.get(event.emplace<I>());
    return true;
  } else {
    return false;
  }
}

}  // namespace

Record to_record(const EventRecord& event, std::uint64_t epoch) {
  Record record;
  record.seq = event.seq;
  record.epoch = epoch;
  record.time = event.time;
  record.kind = kind_of(event.event);
  record.version = kVersion;
  record.payload = std::visit([](const auto& one) { return encode(one); }, event.event);
  if (!event.by.empty()) record.payload += encode(event.by);
  return record;
}

Result<EventRecord> to_event(const Record& record) {
  const std::string where = "event " + std::to_string(record.seq);
  if (record.version != kVersion) {
    return Error{ErrorCode::kUnsupported, where + " has version " + std::to_string(record.version) +
                                              "; this berth reads version 1. It was written by a newer one"};
  }
  EventRecord event;
  event.seq = record.seq;
  event.time = record.time;
  Decoder in(record.payload);
  bool decoded = decode_alternative<0>(in, record.kind, event.event) && in.ok();
  if (decoded && !in.at_end()) {
    in.get(event.by);
    decoded = in.ok() && in.at_end() && !event.by.empty();
  }
  if (!decoded) {
    return Error{ErrorCode::kCorrupt, where + " does not decode (kind " + std::to_string(record.kind) + ")"};
  }
  return event;
}

}  // namespace berth::store
