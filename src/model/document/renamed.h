#pragma once
// The words of configurations, policies, scenarios and events that had another name before. An old word is refused, and
// the refusal names the new one.

#include <optional>
#include <span>
#include <string_view>

namespace berth::document {

// The word among `known` that `word` was renamed to, or nothing. Scenarios write '-' where keys have '_'.
std::optional<std::string_view> renamed(std::string_view word, std::span<const std::string_view> known);

}  // namespace berth::document
