#include "sim/scenario/words.h"

#include <algorithm>
#include <charconv>

#include "base/checked.h"
#include "model/resources.h"

namespace berth::sim {

const std::string* Line::option(std::string_view key) const {
  for (const auto& [name, value] : options) {
    if (name == key) return &value;
  }
  return nullptr;
}

std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t end = text.find(at);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

Line parse_line(std::string_view text) {
  Line line;
  for (const std::string& word : split(text, ' ')) {
    if (word.empty()) continue;
    if (const std::size_t equals = word.find('='); equals != std::string::npos) {
      line.options.emplace_back(word.substr(0, equals), word.substr(equals + 1));
    } else {
      line.names.push_back(word);
    }
  }
  return line;
}

Result<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) {
    return invalid("'" + std::string(text) + "' is not a whole number");
  }
  return value;
}

Result<std::int64_t> parse_count(std::string_view text) {
  auto value = parse_integer(text);
  if (value && (*value < 0 || !std::in_range<std::int32_t>(*value)))
    return invalid("'" + std::string(text) + "' is not between 0 and 2147483647");
  return value;
}

Result<std::int64_t> parse_milli(std::string_view text) {
  const std::size_t dot = text.find('.');
  const auto whole = parse_count(text.substr(0, dot));
  if (!whole) return whole;
  if (dot == std::string_view::npos) return checked_multiply(*whole, kMilli);
  std::string digits(text.substr(dot + 1));
  if (digits.size() > 3) return invalid("'" + std::string(text) + "' is more exact than a thousandth");
  digits.resize(3, '0');
  const auto rest = parse_count(digits);
  if (!rest) return rest;
  return checked_multiply(*whole, kMilli) + *rest;
}

namespace {

Result<std::int64_t> with_unit(std::string_view text,
                               std::initializer_list<std::pair<std::string_view, std::int64_t>> units) {
  for (const auto& [unit, factor] : units) {
    if (!text.ends_with(unit)) continue;
    const auto count = parse_count(text.substr(0, text.size() - unit.size()));
    if (!count) return count;
    return checked_multiply(*count, factor);
  }
  return invalid("'" + std::string(text) + "' has no unit that is known here");
}

}  // namespace

Result<std::int64_t> parse_duration(std::string_view text) {
  return with_unit(text, {{"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}});
}

std::string duration_text(std::int64_t ms) {
  std::string text;
  for (const auto& [unit, factor] :
       {std::pair("h", 3'600'000), std::pair("m", 60'000), std::pair("s", 1000), std::pair("ms", 1)}) {
    if (ms >= factor) text += std::to_string(ms / factor) + unit;
    ms %= factor;
  }
  return text.empty() ? "0s" : text;
}

Result<std::int64_t> parse_mib(std::string_view text) { return with_unit(text, {{"GiB", 1024}, {"MiB", 1}}); }

Result<ResourceAmounts> parse_amounts(std::string_view text) {
  ResourceAmounts amounts;
  for (const std::string& part : split(text, ',')) {
    const std::size_t colon = part.find(':');
    if (colon == std::string::npos) return invalid("'" + part + "' is not resource:amount");
    const std::string name = part.substr(0, colon);
    const std::string value = part.substr(colon + 1);
    const auto amount = name == "memory" ? parse_mib(value) : parse_milli(value);
    if (!amount) return amount.error();
    if (name == "gpus") {
      amounts.gpu_milli = *amount;
    } else if (name == "cpus") {
      amounts.cpu_milli = *amount;
    } else if (name == "memory") {
      amounts.memory_mib = *amount;
    } else {
      amounts.model_gpu_milli.emplace_back(name, *amount);
    }
  }
  std::sort(amounts.model_gpu_milli.begin(), amounts.model_gpu_milli.end());
  return amounts;
}

Result<std::vector<std::string>> expand_names(std::string_view text) {
  constexpr std::int64_t kMostNames = 100'000;
  const std::size_t open = text.find('[');
  if (open == std::string_view::npos) return std::vector{std::string(text)};
  const std::size_t dash = text.find('-', open);
  const auto first = dash == std::string_view::npos ? Result<std::int64_t>(invalid(""))
                                                    : parse_count(text.substr(open + 1, dash - open - 1));
  const auto last = first ? parse_count(text.substr(dash + 1, text.size() - dash - 2)) : first;
  if (!last || !text.ends_with(']') || *first > *last || *last - *first >= kMostNames)
    return invalid("'" + std::string(text) + "' is not NAME[FIRST-LAST] of " + std::to_string(kMostNames) +
                   " names at most");
  std::vector<std::string> names;
  for (std::int64_t i = *first; i <= *last; ++i) {
    names.push_back(std::string(text.substr(0, open)) + std::to_string(i));
  }
  return names;
}

std::string ranges_text(const std::vector<std::uint8_t>& sorted) {
  std::string text;
  for (std::size_t i = 0; i < sorted.size();) {
    std::size_t end = i;
    while (end + 1 < sorted.size() && sorted[end + 1] == sorted[end] + 1) ++end;
    if (!text.empty()) text += ",";
    text += std::to_string(sorted[i]);
    if (end > i) text += "-" + std::to_string(sorted[end]);
    i = end + 1;
  }
  return text;
}

Result<std::int64_t> parse_seconds(std::string_view text) {
  const auto ms = parse_duration(text);
  if (!ms) return ms;
  return *ms / 1000;
}

Result<bool> parse_on_off(std::string_view text) {
  if (text == "on") return true;
  if (text == "off") return false;
  return invalid("'" + std::string(text) + "' is neither on nor off");
}

bool Line::has(std::string_view name) const { return std::find(names.begin(), names.end(), name) != names.end(); }

Result<void> read_amounts(const Line& line, std::string_view key, ResourceAmounts& into) {
  const std::string* text = line.option(key);
  if (text == nullptr) return {};
  auto amounts = parse_amounts(*text);
  if (!amounts) return amounts.error();
  into = std::move(*amounts);
  return {};
}

}  // namespace berth::sim
