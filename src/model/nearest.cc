#include "model/nearest.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace berth {
namespace {

// Levenshtein's distance, one row at a time.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i] == b[j] ? 0U : 1U);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, substituted});
    }
  }
  return row.back();
}

}  // namespace

std::optional<std::string_view> nearest(std::string_view word, std::span<const std::string_view> known) {
  constexpr std::size_t kLongest = 64;                                 // longer words are not typing errors
  if (word.size() < 2 || word.size() > kLongest) return std::nullopt;  // any other letter is near to a single one
  std::optional<std::string_view> best;
  std::size_t best_distance = std::max<std::size_t>(word.size() / 3, 1) + 1;
  for (const std::string_view one : known) {
    const std::size_t longer = std::max(word.size(), one.size()) - std::min(word.size(), one.size());
    if (longer >= best_distance) continue;
    const std::size_t distance = edit_distance(word, one);
    if (distance < best_distance) {
      best_distance = distance;
      best = one;
    }
  }
  return best;
}

}  // namespace berth
