#pragma once
// Fields: the list of a struct's members, written once for the binary codec, JSON and hashing.
//
//   struct Point {
//     int x = 0, y = 0;
//     static constexpr auto fields() { return field_list(field("x", &Point::x), field("y", &Point::y)); }
//   };
//
// The list is append-only once a log may hold the struct: an older record has fewer fields, and the missing fields keep
// their defaults. A field that is appended as field_if_set() is not encoded while it and all fields behind it have
// their defaults: bytes and hashes of records that do not use it stay as they were. EnumNames<E> gives an enum its
// words, in the order of its values from zero.

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>

namespace berth {

template <class Struct, class Member, bool kIfSet = false>
struct Field {
  std::string_view name;
  Member Struct::*member;
  static constexpr bool if_set = kIfSet;  // NOLINT(readability-identifier-naming): it reads as a member
};

template <class Struct, class Member>
constexpr Field<Struct, Member> field(std::string_view name, Member Struct::*member) {
  return {name, member};
}
template <class Struct, class Member>
constexpr Field<Struct, Member, true> field_if_set(std::string_view name, Member Struct::*member) {
  return {name, member};
}

// Returns the fields as a function that passes all of them to `use`. It is a closure and not a std::tuple, because a
// tuple costs the compiler ten times as much. These lists are most of the cost of state's headers.
template <class... Fields>
constexpr auto field_list(Fields... fields) {
  return [=](auto&& use) constexpr->decltype(auto) { return use(fields...); };
}
// Returns both lists as one.
template <class First, class Second>
constexpr auto joined_fields(First first, Second second) {
  return [=](auto&& use) constexpr->decltype(auto) {
    return first([&](const auto&... a) -> decltype(auto) {
      return second([&](const auto&... b) -> decltype(auto) { return use(a..., b...); });
    });
  };
}

template <class T>
concept HasFields = requires {
  T::fields();
};

template <HasFields T, class Visitor>
constexpr void for_each_field(T& object, Visitor&& visit) {
  std::remove_const_t<T>::fields()([&](const auto&... one) { (visit(one.name, object.*(one.member)), ...); });
}

template <HasFields T>
constexpr std::uint64_t field_count() {
  return T::fields()([](const auto&... one) { return std::uint64_t{sizeof...(one)}; });
}

template <HasFields T>
constexpr bool has_fields_if_set() {
  return T::fields()([](const auto&... one) { return (one.if_set || ...); });
}
// How many fields an encoder writes: without those at the end that are not set.
template <HasFields T>
std::uint64_t encoded_field_count(const T& object) {
  if constexpr (has_fields_if_set<T>()) {
    static const T defaults;
    std::uint64_t count = 0;
    std::uint64_t index = 0;
    const auto see = [&](const auto& one) {
      ++index;
      if constexpr (std::remove_cvref_t<decltype(one)>::if_set) {  // only such fields need operator==
        if (object.*(one.member) == defaults.*(one.member)) return;
      }
      count = index;
    };
    T::fields()([&](const auto&... one) { (see(one), ...); });
    return count;
  } else {
    return field_count<T>();
  }
}

template <class E>
struct EnumNames;  // specialise with: static constexpr std::array<std::string_view, N> kNames

template <class E>
concept NamedEnum = requires {
  EnumNames<E>::kNames;
};

template <NamedEnum E>
constexpr std::string_view name_of(E value) {
  return EnumNames<E>::kNames[static_cast<std::size_t>(value)];
}

template <NamedEnum E>
constexpr std::optional<E> enum_from_name(std::string_view name) {
  for (std::size_t i = 0; i < EnumNames<E>::kNames.size(); ++i) {
    if (EnumNames<E>::kNames[i] == name) return static_cast<E>(i);
  }
  return std::nullopt;
}

}  // namespace berth

#define BERTH_ENUM_NAMES(Enum, ...)                                                \
  template <>                                                                      \
  struct EnumNames<Enum> {                                                         \
    static constexpr auto kNames = std::to_array<std::string_view>({__VA_ARGS__}); \
  }
