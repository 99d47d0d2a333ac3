#pragma once
// Events to the log's records and back: the one place that knows how an event lies in the log. A record's kind is the
// event's place in the variant, its version the form of the payload; a form that is no longer written is read by an
// upcaster. tests/golden has logs of older versions; the names of fields are not stored.

#include "base/result.h"
#include "model/event.h"
#include "store/log.h"

namespace berth::store {

Record to_record(const EventRecord& event, std::uint64_t epoch);

// kUnsupported for a version that a newer berth wrote, kCorrupt for bytes that are no event; both name the sequence
// number.
Result<EventRecord> to_event(const Record& record);

}  // namespace berth::store
