#pragma once
// JSON as people like to read it in a terminal: numbers without exponents where they fit (0.5, not 5E-1).

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "api/http/message.h"
#include "base/timestamp.h"

namespace berth::api {

std::string json_text(const boost::json::value& value);
http::Response json_answer(const boost::json::value& value, int status = 200);

// A page of a list: the items, where to go on (nothing: this was the last page), the event and the time they reflect.
http::Response page_answer(boost::json::array items, const std::optional<std::string>& next_cursor, std::uint64_t seq,
                           Timestamp time);

// Thousandths as a number: 8000 is 8, 500 is 0.5.
boost::json::value from_thousandths(std::int64_t amount);
// Millionths likewise, rounded to thousandths.
boost::json::value from_millionths(std::int64_t amount);

}  // namespace berth::api
