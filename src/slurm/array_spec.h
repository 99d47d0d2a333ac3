#pragma once
// The elements of an array: "1-5:2,9%2". A job of berth counts its elements from 0; Slurm gives each a number of its
// own. The n-th element of the array has the n-th number, in ascending order.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::slurm {

struct ElementRange {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t step = 1;

  std::int64_t count() const { return (last - first) / step + 1; }
};

struct ArraySpec {
  std::vector<ElementRange> ranges;  // ascending, none twice
  std::int64_t running = 0;          // at most so many at once; 0: no limit

  std::int64_t count() const;
  // The number of the n-th element, from 0.
  std::int64_t number(std::int64_t index) const;
  // Which element has this number.
  std::optional<std::int64_t> index_of(std::int64_t number) const;
  // "1-5:2,9", without the limit.
  std::string text() const;
};

inline constexpr std::int64_t kMostElements = 1'000'000;
inline constexpr std::int64_t kHighestElement = 4'000'000;
inline constexpr std::size_t kLongestArrayText = 253;  // what a label keeps; without it the numbers would be lost

std::optional<ArraySpec> parse_array(std::string_view text);

// Numbers in ascending order as Slurm writes them: "1-3,5", "0-20:4" where all of many have one distance.
std::string element_set(const std::vector<std::int64_t>& numbers);

}  // namespace berth::slurm
