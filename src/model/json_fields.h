#pragma once
// The definitions behind model/json.h, for a folder that has its own structs to convert to JSON. It includes
// Boost.JSON's values; most code needs only model/json.h.

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/fields.h"
#include "base/strong_id.h"
#include "base/timestamp.h"
#include "model/json.h"

namespace berth::json_detail {

// One overload per kind of type. `write` never fails. `read` returns false and sets `error` if the JSON does not fit.
template <class T>
boost::json::value write(const T& value);
template <class Tag, class Rep>
boost::json::value write(StrongId<Tag, Rep> id);
template <class T>
boost::json::value write(const std::optional<T>& value);
template <class T>
boost::json::value write(const std::vector<T>& items);
template <class T>
boost::json::value write(const std::vector<std::pair<std::string, T>>& entries);
template <class T, std::size_t N>
boost::json::value write(const std::array<T, N>& items);
template <class... T>
boost::json::value write(const std::variant<T...>& choice);

// Returns true for fields that are hashes. These are written as 16 hexadecimal digits, because many JSON readers keep
// only 53 bits of a number.
template <class T>
constexpr bool is_hash(std::string_view name) {
  return std::is_same_v<T, std::uint64_t> && name.ends_with("_hash");
}

inline boost::json::value write_hash(std::uint64_t hash) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  boost::json::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text.push_back(kDigits[(hash >> static_cast<unsigned>(shift)) & 15U]);
  return text;
}

// What each field of each struct needs is called and not inlined: json.cc has a thousand fields.
[[gnu::noinline]] inline void set(boost::json::object& object, std::string_view name, boost::json::value&& value) {
  object.emplace(name, std::move(value));
}

template <class T>
void write_fields(const T& value, boost::json::object& object) {
  const std::uint64_t count = encoded_field_count(value);  // as in the log: without fields at the end that are not set
  std::uint64_t index = 0;
  for_each_field(value, [&]<class Member>(std::string_view name, const Member& member) {
    if (index++ >= count) return;
    if constexpr (std::is_same_v<Member, std::uint64_t>) {
      if (is_hash<Member>(name)) {
        set(object, name, write_hash(member));
        return;
      }
    }
    set(object, name, write(member));
  });
}

template <class T>
boost::json::value write(const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    return boost::json::value(boost::json::string(value));
  } else if constexpr (std::is_same_v<T, Timestamp>) {
    return boost::json::value(boost::json::string(to_iso8601(value)));
  } else if constexpr (NamedEnum<T>) {
    return boost::json::value(boost::json::string(name_of(value)));
  } else if constexpr (HasFields<T>) {
    boost::json::object object;
    write_fields(value, object);
    return object;
  } else {
    static_assert(std::is_integral_v<T>, "this type has no JSON form");
    return boost::json::value(value);
  }
}
template <class Tag, class Rep>
boost::json::value write(StrongId<Tag, Rep> id) {
  if (!id.valid()) return nullptr;
  return boost::json::value(id.value());
}
template <class T>
boost::json::value write(const std::optional<T>& value) {
  if (!value) return nullptr;
  return write(*value);
}
template <class T>
boost::json::value write(const std::vector<T>& items) {
  boost::json::array array;
  array.reserve(items.size());
  for (const auto& item : items) array.push_back(write(item));
  return array;
}
template <class T>
boost::json::value write(const std::vector<std::pair<std::string, T>>& entries) {
  boost::json::object object;
  for (const auto& [name, value] : entries) object.emplace(name, write(value));
  return object;
}
template <class T, std::size_t N>
boost::json::value write(const std::array<T, N>& items) {
  boost::json::array array;
  for (const auto& item : items) array.push_back(write(item));
  return array;
}
template <class... T>
boost::json::value write(const std::variant<T...>& choice) {
  boost::json::object object;
  object.emplace("kind", boost::json::string(kind_name(choice)));
  std::visit([&](const auto& one) { write_fields(one, object); }, choice);
  return object;
}

class Reader {
 public:
  explicit Reader(std::string_view where) : path_(where) {}
  const std::string& error() const { return error_; }

  template <class T>
  bool read(const boost::json::value& json, T& value) {
    if constexpr (std::is_same_v<T, std::string>) {
      if (!json.is_string()) return refuse("give a string");
      value.assign(json.get_string().data(), json.get_string().size());
      return true;
    } else if constexpr (std::is_same_v<T, bool>) {
      if (!json.is_bool()) return refuse("give true or false");
      value = json.get_bool();
      return true;
    } else if constexpr (std::is_same_v<T, Timestamp>) {
      return read_time(json, value);
    } else if constexpr (NamedEnum<T>) {
      return read_enum(json, value);
    } else if constexpr (HasFields<T>) {
      if (!json.is_object()) return refuse("give an object");
      return read_fields(json.get_object(), value);
    } else if constexpr (std::is_integral_v<T>) {
      return read_integer(json, value);
    } else {
      return read_composite(json, value);
    }
  }

  // Reads the fields of an object. `tags` are names in it that belong to the caller and not to T.
  template <class T>
  bool read_fields(const boost::json::object& object, T& value, std::initializer_list<std::string_view> tags = {}) {
    std::size_t known = 0;
    for (const std::string_view tag : tags) known += object.contains(tag) ? 1U : 0U;
    bool ok = true;
    for_each_field(value, [&](std::string_view name, auto& member) {
      const auto* found = ok ? enter(object, name) : nullptr;
      if (found == nullptr) return;
      ++known;
      const std::size_t length = path_.size() - 1 - name.size();
      ok = read_member(name, *found, member);
      path_.resize(length);
    });
    if (!ok) return false;
    return known == object.size() ||
           refuse_unknown(object, tags,
                          T::fields()([](const auto&... one) { return std::vector<std::string_view>{one.name...}; }));
  }

  // Reads the alternative that "kind" names.
  template <std::size_t I = 0, class... T>
  bool read_choice(const boost::json::object& object, std::variant<T...>& choice,
                   std::initializer_list<std::string_view> tags) {
    if constexpr (I == sizeof...(T)) {
      return refuse("'kind' does not name one of its kinds");
    } else {
      auto& one = choice.template emplace<I>();
      const auto* kind = object.if_contains("kind");
      if (kind != nullptr && kind->is_string() && kind_name(choice) == std::string_view(kind->get_string())) {
        return read_fields(object, one, tags);
      }
      return read_choice<I + 1>(object, choice, tags);
    }
  }

  [[gnu::noinline]] bool refuse(const std::string& message) {
    const std::string path = path_.starts_with('.') ? path_.substr(1) : path_;
    error_ = (path.empty() ? "the value" : path) + ": " + message;
    return false;
  }

 private:
  template <class Body>
  bool at(const std::string& step, Body&& body) {
    const std::size_t length = path_.size();
    path_ += step;
    const bool ok = body();
    path_.resize(length);
    return ok;
  }

  template <class T>
  bool read_member(std::string_view name, const boost::json::value& json, T& member) {
    if constexpr (std::is_same_v<T, std::uint64_t>) {
      if (is_hash<T>(name)) return read_hash(json, member);
    }
    return read(json, member);
  }

  bool read_hash(const boost::json::value& json, std::uint64_t& hash) {
    const std::string_view text = json.is_string() ? std::string_view(json.get_string()) : std::string_view();
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), hash, 16);
    const bool whole = text.size() == 16 && error == std::errc() && end == text.data() + text.size();
    return whole || refuse("give 16 hexadecimal digits");
  }

  [[gnu::noinline]] bool refuse_unknown(const boost::json::object& object, std::initializer_list<std::string_view> tags,
                                        const std::vector<std::string_view>& names) {
    for (const auto& entry : object) {
      const std::string_view key = entry.key();
      if (std::find(tags.begin(), tags.end(), key) != tags.end()) continue;
      if (std::find(names.begin(), names.end(), key) != names.end()) continue;
      return refuse("there is no field '" + std::string(key) + "'");
    }
    return true;
  }

  // The field's value, whose path is then the current one; null where the object has no such field.
  [[gnu::noinline]] const boost::json::value* enter(const boost::json::object& object, std::string_view name) {
    const auto* found = object.if_contains(name);
    if (found == nullptr) return nullptr;
    path_ += '.';
    path_ += name;
    return found;
  }

  bool read_time(const boost::json::value& json, Timestamp& value) {
    if (json.is_int64()) {
      value = {json.get_int64()};
      return true;
    }
    const auto parsed =
        json.is_string() ? from_iso8601(std::string_view(json.get_string())) : std::optional<Timestamp>();
    if (!parsed) return refuse("give a time such as 2026-11-21T08:15:30Z, or milliseconds since 1970");
    value = *parsed;
    return true;
  }

  template <class E>
  bool read_enum(const boost::json::value& json, E& value) {
    const auto found = json.is_string() ? enum_from_name<E>(std::string_view(json.get_string())) : std::optional<E>();
    if (found) {
      value = *found;
      return true;
    }
    std::string words;
    for (const std::string_view word : EnumNames<E>::kNames) words += (words.empty() ? "" : ", ") + std::string(word);
    return refuse("give one of " + words);
  }

  template <class T>
  bool read_integer(const boost::json::value& json, T& value) {
    if (json.is_int64() && std::in_range<T>(json.get_int64())) {
      value = static_cast<T>(json.get_int64());
    } else if (json.is_uint64() && std::in_range<T>(json.get_uint64())) {
      value = static_cast<T>(json.get_uint64());
    } else {
      return refuse("give an integer between " + std::to_string(std::numeric_limits<T>::min()) + " and " +
                    std::to_string(std::numeric_limits<T>::max()));
    }
    return true;
  }

  template <class Tag, class Rep>
  bool read_composite(const boost::json::value& json, StrongId<Tag, Rep>& id) {
    id = {};
    if (json.is_null()) return true;
    Rep raw{};
    if (!read_integer(json, raw)) return false;
    id = StrongId<Tag, Rep>(raw);
    return true;
  }
  template <class T>
  bool read_composite(const boost::json::value& json, std::optional<T>& value) {
    value.reset();
    return json.is_null() || read(json, value.emplace());
  }
  template <class T>
  bool read_composite(const boost::json::value& json, std::vector<T>& items) {
    if (!json.is_array()) return refuse("give a list");
    items.clear();
    for (const auto& one : json.get_array()) {
      const std::string step = "[" + std::to_string(items.size()) + "]";
      if (!at(step, [&] { return read(one, items.emplace_back()); })) return false;
    }
    return true;
  }
  template <class T>
  bool read_composite(const boost::json::value& json, std::vector<std::pair<std::string, T>>& entries) {
    if (!json.is_object()) return refuse("give an object");
    entries.clear();
    for (const auto& one : json.get_object()) {
      auto& entry = entries.emplace_back(std::string(one.key()), T{});
      if (!at("." + entry.first, [&] { return read(one.value(), entry.second); })) return false;
    }
    return true;
  }
  template <class T, std::size_t N>
  bool read_composite(const boost::json::value& json, std::array<T, N>& items) {
    if (!json.is_array() || json.get_array().size() != N) return refuse("give a list of " + std::to_string(N));
    for (std::size_t i = 0; i < N; ++i) {
      if (!at("[" + std::to_string(i) + "]", [&] { return read(json.get_array()[i], items[i]); })) return false;
    }
    return true;
  }
  template <class... T>
  bool read_composite(const boost::json::value& json, std::variant<T...>& choice) {
    if (!json.is_object()) return refuse("give an object");
    return read_choice(json.get_object(), choice, {"kind"});
  }

  std::string path_;
  std::string error_;
};

}  // namespace berth::json_detail

namespace berth {

template <class T>
boost::json::value to_json(const T& value) {
  return json_detail::write(value);
}

template <class T>
Result<T> from_json(const boost::json::value& json, std::string_view where) {
  json_detail::Reader reader(where);
  T value{};
  if (!reader.read(json, value)) return invalid(reader.error());
  return value;
}

}  // namespace berth
