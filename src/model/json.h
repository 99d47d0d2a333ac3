#pragma once
// The model as JSON. A struct that lists its fields becomes an object with those names, in that order. An id is a
// number (null for none), a Timestamp an ISO 8601 string, an enum its word. A list of (name, value) pairs is an object.
// An Event is an object whose "kind" names the alternative. Reading is strict: an unknown name, a wrong type or a
// number out of range is refused with its path. An absent field keeps its default.
//
// This header is cheap to include. The types of the model (listed in json.cc) are compiled once, there. For structs of
// another folder include model/json_fields.h.

#include <boost/json/fwd.hpp>
#include <string_view>

#include "base/result.h"
#include "model/event.h"

namespace berth {

template <class T>
boost::json::value to_json(const T& value);

// Returns the value, or an error with the path of the mistake, such as "groups[0].count: 'x' is not an integer".
// `where` is the beginning of that path.
template <class T>
Result<T> from_json(const boost::json::value& json, std::string_view where = {});

// {"seq": 7, "time": "2026-11-21T08:15:30.250Z", "kind": "job-submitted", ...the event's fields, "by": {...}}
boost::json::object event_json(const EventRecord& record);
Result<EventRecord> event_from_json(const boost::json::value& json);

}  // namespace berth
