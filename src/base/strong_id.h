#pragma once
// StrongId<Tag, Rep>: an integer that identifies one kind of thing and cannot be mixed up with other ids. Dense ids
// (nodes, queues) index vectors; sparse ids (jobs) only grow. It does not convert back to an integer by itself; call
// value() for that.

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
