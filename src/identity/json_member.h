#pragma once
// Members of a JSON object that are texts.

#include <boost/json/object.hpp>
#include <string>
#include <string_view>

namespace berth::identity {

// Returns null if the member is absent or no text.
inline const boost::json::string* string_in(const boost::json::object& object, std::string_view name) {
  const boost::json::value* value = object.if_contains(name);
  return value == nullptr ? nullptr : value->if_string();
}

// Returns the empty text if the member is absent or no text.
inline std::string text_in(const boost::json::object& object, std::string_view name) {
  const boost::json::string* text = string_in(object, name);
  return text == nullptr ? std::string() : std::string(text->data(), text->size());
}

}  // namespace berth::identity
