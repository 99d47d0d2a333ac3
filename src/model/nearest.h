#pragma once
// Which word a mistyped one probably stands for.

#include <optional>
#include <span>
#include <string_view>

namespace berth {

// Returns the word among `known` that `word` probably stands for, or nothing. At most a third of the letters differ.
std::optional<std::string_view> nearest(std::string_view word, std::span<const std::string_view> known);

}  // namespace berth
