#pragma once
// Reading of objects whose writer is not trusted: what is absent or of another type reads as empty.

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace berth::kube {

// Returns the object or array at the path below `object`, or null.
const boost::json::object* object_at(const boost::json::object& object, std::initializer_list<std::string_view> path);
const boost::json::array* array_at(const boost::json::object& object, std::initializer_list<std::string_view> path);
// Returns the text at the path, at most 4 KiB of it; empty if there is none.
std::string text_at(const boost::json::object& object, std::initializer_list<std::string_view> path);
// Returns the value of a label or annotation of the object; empty if there is none.
std::string label_at(const boost::json::object& object, std::string_view key);
std::string annotation_at(const boost::json::object& object, std::string_view key);
bool true_at(const boost::json::object& object, std::initializer_list<std::string_view> path);
// Returns the integer at the path, or `absent` if there is none.
std::int64_t integer_at(const boost::json::object& object, std::initializer_list<std::string_view> path,
                        std::int64_t absent);
// Returns the elements of the array at the path that are objects.
std::vector<const boost::json::object*> objects_at(const boost::json::object& object,
                                                   std::initializer_list<std::string_view> path);
// Returns `text` as it may stand in a message: cut, and without control characters.
std::string shown(std::string_view text, std::size_t most = 200);

}  // namespace berth::kube
