#pragma once
// StrongId<Tag, Rep>: an integer that is one kind of id and no other. Dense ids (nodes, queues) index vectors; sparse
// ones (jobs) only grow. There is no implicit way back to the integer: value() says that you mean it.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>

namespace berth {

template <class Tag, class Rep = std::uint32_t>
class StrongId {
 public:
  using rep = Rep;
  constexpr StrongId() = default;
  constexpr explicit StrongId(Rep value) : value_(value) {}

  static constexpr StrongId none() { return StrongId(); }
  constexpr bool valid() const { return value_ != std::numeric_limits<Rep>::max(); }
  constexpr Rep value() const { return value_; }
  constexpr std::size_t index() const { return static_cast<std::size_t>(value_); }
  constexpr auto operator<=>(const StrongId&) const = default;

 private:
  Rep value_ = std::numeric_limits<Rep>::max();
};

}  // namespace berth

template <class Tag, class Rep>
struct std::hash<berth::StrongId<Tag, Rep>> {
  std::size_t operator()(berth::StrongId<Tag, Rep> id) const noexcept { return std::hash<Rep>()(id.value()); }
};
