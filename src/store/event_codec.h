#pragma once
// Converts events to records of the log and back. Only this file knows the form of an event in the log. The kind of a
// record is the index of the event in the variant; its version is the form of the payload. An old form is read by an
// upcaster, which is tested on a golden log of the release that wrote it. Behind the fields of the event are those of
// its origin, if it has one.

#include "base/result.h"
#include "model/event.h"
#include "store/log.h"

namespace berth::store {

Record to_record(const EventRecord& event, std::uint64_t epoch);

// Error kUnsupported: a newer berth wrote this version. Error kCorrupt: the bytes are no event. Both name the sequence
// number.
Result<EventRecord> to_event(const Record& record);

}  // namespace berth::store
