#include "daemon/event_codec.h"

#include <string>
#include <utility>

#include "base/codec.h"

namespace berth::daemon {

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

struct SavedRetired {
  state::JobState job;
  JobFinished how;
  Timestamp finished;
  static constexpr auto fields() {
    return std::tuple(field("job", &SavedRetired::job), field("how", &SavedRetired::how),
                      field("finished", &SavedRetired::finished));
  }
};

}  // namespace

store::Record to_record(const EventRecord& event, std::uint64_t epoch) {
  store::Record record;
  record.seq = event.seq;
  record.epoch = epoch;
  record.time = event.time;
  record.kind = kind_of(event.event);
  record.version = kVersion;
  record.payload = std::visit([](const auto& one) { return encode(one); }, event.event);
  return record;
}

Result<EventRecord> to_event(const store::Record& record) {
  const std::string where = "event " + std::to_string(record.seq);
  if (record.version != kVersion) {
    return Error{ErrorCode::kUnsupported, where + " has version " + std::to_string(record.version) +
                                              "; this berth reads version 1. It was written by a newer one"};
  }
  EventRecord event;
  event.seq = record.seq;
  event.time = record.time;
  Decoder in(record.payload);
  if (!decode_alternative<0>(in, record.kind, event.event) || !in.ok() || !in.at_end()) {
    return Error{ErrorCode::kCorrupt, where + " does not decode (kind " + std::to_string(record.kind) + ")"};
  }
  return event;
}

store::HistoryRow to_history(const control::Retired& retired) {
  store::HistoryRow row;
  row.job_id = retired.job.id.value();
  row.finished = retired.finished;
  row.bytes = encode(SavedRetired{retired.job, retired.how, retired.finished});
  return row;
}

Result<control::Retired> to_retired(const store::HistoryRow& row) {
  auto saved = decode<SavedRetired>(row.bytes);
  if (!saved)
    return Error{ErrorCode::kCorrupt, "the history of job " + std::to_string(row.job_id) + " does not decode"};
  return control::Retired{std::move(saved->job), std::move(saved->how), saved->finished};
}

}  // namespace berth::daemon
