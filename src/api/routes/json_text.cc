#include "api/routes/json_text.h"

#include <array>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <charconv>
#include <cmath>

namespace berth::api {
namespace {

namespace json = boost::json;

void write(const json::value& value, std::string& text);

void write_string(std::string_view string, std::string& text) { text += json::serialize(json::value(string)); }

void write_double(double number, std::string& text) {
  std::array<char, 64> digits{};
  const bool plain = std::abs(number) < 1e15 && (number == 0 || std::abs(number) >= 1e-6);
  const auto format = plain ? std::chars_format::fixed : std::chars_format::scientific;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number, format);
  text.append(digits.data(), end.ptr);
}

void write_array(const json::array& items, std::string& text) {
  text += '[';
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) text += ',';
    write(items[i], text);
  }
  text += ']';
}

void write_object(const json::object& object, std::string& text) {
  text += '{';
  bool first = true;
  for (const auto& [key, value] : object) {
    if (!first) text += ',';
    first = false;
    write_string(key, text);
    text += ':';
    write(value, text);
  }
  text += '}';
}

void write(const json::value& value, std::string& text) {
  switch (value.kind()) {
    case json::kind::array:
      return write_array(value.get_array(), text);
    case json::kind::object:
      return write_object(value.get_object(), text);
    case json::kind::string:
      return write_string(value.get_string(), text);
    case json::kind::double_:
      return write_double(value.get_double(), text);
    case json::kind::null:
    case json::kind::bool_:
    case json::kind::int64:
    case json::kind::uint64:
      text += json::serialize(value);
  }
}

}  // namespace

std::string json_text(const json::value& value) {
  std::string text;
  write(value, text);
  return text;
}

http::Response json_answer(const json::value& value, int status) {
  return {.status = status, .content_type = "application/json", .headers = {}, .body = json_text(value)};
}

http::Response page_answer(boost::json::array items, const std::optional<std::string>& next_cursor, std::uint64_t seq,
                           Timestamp time) {
  boost::json::value next = nullptr;
  if (next_cursor) next = boost::json::string(*next_cursor);
  return json_answer(boost::json::object{
      {"items", std::move(items)}, {"next_cursor", std::move(next)}, {"seq", seq}, {"time", to_iso8601(time)}});
}

json::value from_thousandths(std::int64_t amount) {
  if (amount % 1000 == 0) return amount / 1000;
  return static_cast<double>(amount) / 1000.0;
}

json::value from_millionths(std::int64_t amount) { return from_thousandths((amount + 500) / 1000); }

}  // namespace berth::api
