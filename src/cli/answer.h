#pragma once
// Reading the server's JSON: what is absent or of another type reads as nothing, so that an older or newer server's
// answer is still shown as far as it goes.

#include <boost/json/value.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace berth::cli {

using Json = boost::json::value;

// The member of that name, or null; never absent.
const Json& at(const Json& value, std::string_view name);

// A string, number or boolean as it is shown: 0.5, 8, yes; empty for anything else.
std::string show(const Json& value);
inline std::string show(const Json& value, std::string_view name) { return show(at(value, name)); }

std::int64_t integer(const Json& value, std::string_view name);
double number(const Json& value, std::string_view name);
// "4%"
std::string percent_text(const Json& value, std::string_view name);
bool is_true(const Json& value, std::string_view name);
bool has(const Json& value, std::string_view name);  // there and not null

// The items of an array; none when it is not one.
const boost::json::array& items(const Json& value);
inline const boost::json::array& items(const Json& value, std::string_view name) { return items(at(value, name)); }

std::string joined(const std::vector<std::string>& parts, std::string_view between);
std::string joined(const Json& strings, std::string_view between);

}  // namespace berth::cli
