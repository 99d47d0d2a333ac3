#pragma once
// member_count<T>(): how many members a plain struct has, so that a list of its fields (base/fields.h) can be checked
// to be complete. Requires an aggregate without arrays and without members that are aggregates of several members.

#include <cstddef>
#include <type_traits>
#include <utility>

namespace berth {

namespace member_count_detail {

struct AnyMember {
  template <class T>
  constexpr operator T() const;  // only named in unevaluated operands
};

template <class T, std::size_t... Is>
constexpr bool takes(std::index_sequence<Is...>) {
  return requires { T{((void)Is, AnyMember{})...}; };
}

}  // namespace member_count_detail

template <class T, std::size_t Count = 0>
constexpr std::size_t member_count() {
  static_assert(std::is_aggregate_v<T>);
  if constexpr (member_count_detail::takes<T>(std::make_index_sequence<Count + 1>())) {
    return member_count<T, Count + 1>();
  } else {
    return Count;
  }
}

}  // namespace berth
