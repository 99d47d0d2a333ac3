#pragma once
// Events to the log's records and back. A record's kind is the event's place in the variant, its version the form of
// the payload; a form that is no longer written is read by an upcaster, tested on a golden log of the release that
// wrote it.

#include "base/result.h"
#include "control/batch.h"
#include "model/event.h"
#include "store/log.h"

namespace berth::daemon {

store::Record to_record(const EventRecord& event, std::uint64_t epoch);

// kCorrupt names the sequence number.
Result<EventRecord> to_event(const store::Record& record);

store::HistoryRow to_history(const control::Retired& retired);
Result<control::Retired> to_retired(const store::HistoryRow& row);

}  // namespace berth::daemon
