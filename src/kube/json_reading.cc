#include "kube/json_reading.h"

#include "base/utf8.h"

namespace berth::kube {
namespace {

namespace json = boost::json;
constexpr std::size_t kMostText = 4096;

const json::value* value_at(const json::object& object, std::initializer_list<std::string_view> path) {
  const json::object* at = &object;
  const json::value* found = nullptr;
  for (const std::string_view name : path) {
    if (at == nullptr) return nullptr;
    found = at->if_contains(name);
    if (found == nullptr) return nullptr;
    at = found->if_object();
  }
  return found;
}

}  // namespace

const json::object* object_at(const json::object& object, std::initializer_list<std::string_view> path) {
  const json::value* found = value_at(object, path);
  return found == nullptr ? nullptr : found->if_object();
}

const json::array* array_at(const json::object& object, std::initializer_list<std::string_view> path) {
  const json::value* found = value_at(object, path);
  return found == nullptr ? nullptr : found->if_array();
}

std::string text_at(const json::object& object, std::initializer_list<std::string_view> path) {
  const json::value* found = value_at(object, path);
  const json::string* text = found == nullptr ? nullptr : found->if_string();
  if (text == nullptr) return {};
  return std::string(std::string_view(*text).substr(0, kMostText));
}

std::string label_at(const json::object& object, std::string_view key) {
  return text_at(object, {"metadata", "labels", key});
}

std::string annotation_at(const json::object& object, std::string_view key) {
  return text_at(object, {"metadata", "annotations", key});
}

bool true_at(const json::object& object, std::initializer_list<std::string_view> path) {
  const json::value* found = value_at(object, path);
  const bool* truth = found == nullptr ? nullptr : found->if_bool();
  return truth != nullptr && *truth;
}

std::int64_t integer_at(const json::object& object, std::initializer_list<std::string_view> path, std::int64_t absent) {
  const json::value* found = value_at(object, path);
  const std::int64_t* number = found == nullptr ? nullptr : found->if_int64();
  return number == nullptr ? absent : *number;
}

std::vector<const json::object*> objects_at(const json::object& object, std::initializer_list<std::string_view> path) {
  std::vector<const json::object*> objects;
  const json::array* array = array_at(object, path);
  if (array == nullptr) return objects;
  for (const json::value& element : *array) {
    if (const json::object* one = element.if_object()) objects.push_back(one);
  }
  return objects;
}

std::string shown(std::string_view text, std::size_t most) {
  std::string safe(text.substr(0, most));
  for (char& letter : safe) {
    if (static_cast<unsigned char>(letter) < 0x20 || letter == 0x7F) letter = '?';
  }
  while (!safe.empty() && !is_utf8(safe)) safe.pop_back();  // it was cut within a character
  return safe;
}

}  // namespace berth::kube
