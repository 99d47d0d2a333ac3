#pragma once
// JSON schemas in the dialect of OpenAPI 3.0, written as the objects that they describe.

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "base/fields.h"

namespace berth::api::schema {

using Schema = boost::json::object;

Schema text(std::string_view description);
Schema matching(std::string_view description, std::string_view pattern);  // a text; an ECMAScript regular expression
Schema time(std::string_view description);
Schema integer(std::string_view description);
Schema integer(std::string_view description, std::int64_t low, std::int64_t high);  // both belong to it
Schema number(std::string_view description);
Schema boolean(std::string_view description);
Schema word(std::string_view description, boost::json::array words);
Schema list(std::string_view description, Schema item);
Schema map(std::string_view description, Schema value);  // an object with names of the user's choice
Schema nullable(Schema schema);
Schema either(std::string_view description, std::initializer_list<Schema> schemas);
Schema reference(std::string_view name);

// Names that end in '?' may be absent.
Schema object(std::string_view description, std::initializer_list<std::pair<std::string_view, Schema>> members);
// The same with nothing else in it: for what clients send.
Schema closed(Schema object);

template <NamedEnum E>
Schema word_of(std::string_view description) {
  return word(description, boost::json::array(EnumNames<E>::kNames.begin(), EnumNames<E>::kNames.end()));
}

}  // namespace berth::api::schema
