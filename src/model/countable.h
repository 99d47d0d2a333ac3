#pragma once
// Countables: named integers of a node that tasks ask for beside CPUs, memory and GPUs, such as rdma/hca,
// vpc.amazonaws.com/efa or hugepages-2Mi. They limit where a task may run. They are no part of any quota and have no
// price.

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace berth {

// Amounts by name, sorted by name; none is zero or less.
using Countables = std::vector<std::pair<std::string, std::int64_t>>;

// The most countables of a node or of a task's request, and the largest amount of one.
inline constexpr std::size_t kMaxCountables = 64;
inline constexpr std::int64_t kMaxCountable = std::int64_t{1} << 50;

// How many tasks a node takes at once. Each task asks for one, whatever its request says. A node that does not name it
// takes any number.
inline constexpr std::string_view kPodsCountable = "pods";

// Returns the amount of this name; 0 if there is none.
inline std::int64_t amount_in(const Countables& countables, std::string_view name) {
  const auto found = std::lower_bound(countables.begin(), countables.end(), name,
                                      [](const auto& one, std::string_view wanted) { return one.first < wanted; });
  return found != countables.end() && found->first == name ? found->second : 0;
}

// Returns how much of it a task takes whose request names these.
inline std::int64_t taken_by_task(const Countables& countables, std::string_view name) {
  return name == kPodsCountable ? 1 : amount_in(countables, name);
}

inline constexpr std::string_view kCountablesRule =
    "at most 64, in ascending order of their names, each from 1 to 1125899906842624";

// Returns true if the names are ascending without repetition, and all amounts are from 1 to kMaxCountable.
inline bool is_well_formed(const Countables& countables) {
  return countables.size() <= kMaxCountables &&
         std::adjacent_find(countables.begin(), countables.end(),
                            [](const auto& a, const auto& b) { return a.first >= b.first; }) == countables.end() &&
         std::all_of(countables.begin(), countables.end(), [](const auto& one) {
           return !one.first.empty() && one.second > 0 && one.second <= kMaxCountable;
         });
}

}  // namespace berth
