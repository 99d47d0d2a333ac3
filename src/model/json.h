#pragma once
// The model as JSON: every struct that lists its fields becomes an object with those names, in that order. An id is a
// number (null when there is none), a Timestamp an ISO 8601 string, an enum its word, a list of (name, value) pairs an
// object, an Event an object whose "kind" tells the alternative. Reading is strict: a name that the struct does not
// have, a wrong type or a number out of range is refused with its path; what is absent keeps its default.
//
// This header is cheap to include. The nouns of the model (listed in json.cc) are compiled once, there; for structs of
// another folder include model/json_fields.h.

#include <boost/json/fwd.hpp>
#include <string_view>

#include "base/result.h"
#include "model/event.h"

namespace berth {

template <class T>
boost::json::value to_json(const T& value);

// `where` begins the path in error messages: "groups[0].count: 'x' is not an integer".
template <class T>
Result<T> from_json(const boost::json::value& json, std::string_view where = {});

// {"seq": 7, "time": "2026-11-21T08:15:30.250Z", "kind": "job-submitted", ...the event's fields}
boost::json::object event_json(const EventRecord& record);
Result<EventRecord> event_from_json(const boost::json::value& json);

}  // namespace berth
