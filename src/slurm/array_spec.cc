#include "slurm/array_spec.h"

#include <algorithm>

namespace berth::slurm {
namespace {

std::optional<std::int64_t> element_number(std::string_view text) {
  if (text.empty() || text.size() > 9) return std::nullopt;
  std::int64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return value > kHighestElement ? std::nullopt : std::optional(value);
}

std::optional<ElementRange> parse_range(std::string_view text) {
  ElementRange range;
  const std::size_t colon = text.find(':');
  if (colon != std::string_view::npos) {
    const auto step = element_number(text.substr(colon + 1));
    if (!step || *step == 0 || text.find('-') == std::string_view::npos) return std::nullopt;
    range.step = *step;
    text = text.substr(0, colon);
  }
  const std::size_t dash = text.find('-');
  const auto first = element_number(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : element_number(text.substr(dash + 1));
  if (!first || !last || *last < *first) return std::nullopt;
  range.first = *first;
  range.last = *first + (*last - *first) / range.step * range.step;
  return range;
}

// Ranges of equal steps that hold these numbers, which ascend.
std::vector<ElementRange> ranges_of(const std::vector<std::int64_t>& numbers) {
  std::vector<ElementRange> ranges;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i + 1;
    const std::int64_t step = end < numbers.size() ? numbers[end] - numbers[i] : 1;
    while (end < numbers.size() && numbers[end] - numbers[end - 1] == step) ++end;
    if (end - i == 2 && step > 1) end = i + 1;
    ranges.push_back({numbers[i], numbers[end - 1], end - i == 1 ? 1 : step});
    i = end;
  }
  return ranges;
}

bool has_one_distance(const std::vector<std::int64_t>& numbers) {
  if (numbers.size() < 2 || numbers.back() - numbers.front() <= 10) return false;
  const std::int64_t step = numbers[1] - numbers[0];
  if (step == 1) return false;
  for (std::size_t i = 1; i < numbers.size(); ++i) {
    if (numbers[i] - numbers[i - 1] != step) return false;
  }
  return true;
}

}  // namespace

std::int64_t ArraySpec::count() const {
  std::int64_t all = 0;
  for (const ElementRange& range : ranges) all += range.count();
  return all;
}

std::int64_t ArraySpec::number(std::int64_t index) const {
  for (const ElementRange& range : ranges) {
    if (index < range.count()) return range.first + index * range.step;
    index -= range.count();
  }
  return index;
}

std::optional<std::int64_t> ArraySpec::index_of(std::int64_t number) const {
  std::int64_t before = 0;
  for (const ElementRange& range : ranges) {
    if (number >= range.first && number <= range.last && (number - range.first) % range.step == 0)
      return before + (number - range.first) / range.step;
    before += range.count();
  }
  return std::nullopt;
}

std::string ArraySpec::text() const {
  std::string all;
  for (const ElementRange& range : ranges) {
    all += (all.empty() ? "" : ",") + std::to_string(range.first);
    if (range.last > range.first) all += "-" + std::to_string(range.last);
    if (range.last > range.first && range.step > 1) all += ":" + std::to_string(range.step);
  }
  return all;
}

std::optional<ArraySpec> parse_array(std::string_view text) {
  ArraySpec spec;
  const std::size_t percent = text.find('%');
  if (percent != std::string_view::npos) {
    const auto running = element_number(text.substr(percent + 1));
    if (!running) return std::nullopt;
    spec.running = *running;
    text = text.substr(0, percent);
  }
  std::int64_t count = 0;
  bool ascending = true;
  while (true) {
    const std::size_t comma = text.find(',');
    const auto range = parse_range(text.substr(0, comma));
    if (!range || (count += range->count()) > kMostElements) return std::nullopt;
    ascending = ascending && (spec.ranges.empty() || spec.ranges.back().last < range->first);
    spec.ranges.push_back(*range);
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  if (ascending && spec.text().size() <= kLongestArrayText) return spec;  // as most are, also large ones
  std::vector<std::int64_t> numbers;
  for (const ElementRange& range : spec.ranges) {
    for (std::int64_t i = range.first; i <= range.last; i += range.step) numbers.push_back(i);
  }
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  spec.ranges = ranges_of(numbers);
  return spec;
}

std::string element_set(const std::vector<std::int64_t>& numbers) {
  if (has_one_distance(numbers)) {
    return std::to_string(numbers.front()) + "-" + std::to_string(numbers.back()) + ":" +
           std::to_string(numbers[1] - numbers[0]);
  }
  std::string all;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    all += (all.empty() ? "" : ",") + std::to_string(numbers[i]);
    if (end - i > 1) all += "-" + std::to_string(numbers[end - 1]);
    i = end;
  }
  return all;
}

}  // namespace berth::slurm
