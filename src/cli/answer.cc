#include "cli/answer.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cmath>

#include "cli/output.h"

namespace berth::cli {

const Json& at(const Json& value, std::string_view name) {
  static const Json nothing;
  const auto* object = value.if_object();
  const Json* member = object == nullptr ? nullptr : object->if_contains(name);
  return member == nullptr ? nothing : *member;
}

std::string show(const Json& value) {
  if (const auto* text = value.if_string()) return {text->data(), text->size()};
  if (const auto* truth = value.if_bool()) return *truth ? "yes" : "no";
  if (!value.is_number()) return "";
  std::string line = json_line(value);
  line.pop_back();
  return line;
}

std::int64_t integer(const Json& value, std::string_view name) {
  const Json& member = at(value, name);
  boost::json::error_code ec;
  const auto whole = member.to_number<std::int64_t>(ec);
  return ec ? 0 : whole;
}

double number(const Json& value, std::string_view name) {
  const Json& member = at(value, name);
  boost::json::error_code ec;
  const auto real = member.to_number<double>(ec);
  return ec ? 0 : real;
}

std::string percent_text(const Json& value, std::string_view name) {
  return std::to_string(std::lround(number(value, name))) + "%";
}

bool is_true(const Json& value, std::string_view name) {
  const auto* truth = at(value, name).if_bool();
  return truth != nullptr && *truth;
}

bool has(const Json& value, std::string_view name) { return !at(value, name).is_null(); }

const boost::json::array& items(const Json& value) {
  static const boost::json::array none;
  const auto* array = value.if_array();
  return array == nullptr ? none : *array;
}

std::string joined(const std::vector<std::string>& parts, std::string_view between) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : std::string(between)) + part;
  return text;
}

std::string joined(const Json& strings, std::string_view between) {
  std::vector<std::string> parts;
  for (const Json& part : items(strings)) parts.push_back(show(part));
  return joined(parts, between);
}

}  // namespace berth::cli
