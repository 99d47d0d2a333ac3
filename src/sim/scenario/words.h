#pragma once
// The words of a scenario's lines: names, `key=value` pairs, amounts and times.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/timestamp.h"
#include "model/cluster_config.h"

namespace berth::sim {

// Scenario time begins at zero, the core's a day later: zero means "not set" there.
constexpr Timestamp kBegin{86'400'000};

struct Line {
  std::vector<std::string> names;                            // words without `=`, in order
  std::vector<std::pair<std::string, std::string>> options;  // words with `=`

  const std::string* option(std::string_view key) const;
  bool has(std::string_view name) const;
};

Line parse_line(std::string_view text);
std::vector<std::string> split(std::string_view text, char at);

// "90s", "10m", "2h", "500ms" in milliseconds.
Result<std::int64_t> parse_duration(std::string_view text);
std::string duration_text(std::int64_t ms);

Result<std::int64_t> parse_seconds(std::string_view text);
Result<bool> parse_on_off(std::string_view text);
Result<std::int64_t> parse_integer(std::string_view text);
// Not below zero, and no larger than a count may be.
Result<std::int64_t> parse_count(std::string_view text);
// "8", "0.5": thousandths.
Result<std::int64_t> parse_milli(std::string_view text);
// "512GiB", "100MiB" in MiB.
Result<std::int64_t> parse_mib(std::string_view text);
// "gpus:8,cpus:64,memory:512GiB,H100:4"
Result<ResourceAmounts> parse_amounts(std::string_view text);
// "n[1-4]" is n1 n2 n3 n4, a hundred thousand at most.
Result<std::vector<std::string>> expand_names(std::string_view text);
// {0,1,2,5} is "0-2,5".
std::string ranges_text(const std::vector<std::uint8_t>& sorted);

// Reads `key` from the line into `into`; what that cannot hold is refused.
template <class Parse, class Into>
Result<void> read_option(const Line& line, std::string_view key, Parse&& parse, Into& into) {
  const std::string* text = line.option(key);
  if (text == nullptr) return {};
  const auto value = parse(*text);
  if (!value) return Error{ErrorCode::kInvalid, std::string(key) + ": " + value.error().message};
  if constexpr (std::is_same_v<Into, bool>) {
    into = *value;
  } else {
    if (!std::in_range<Into>(*value))
      return Error{ErrorCode::kInvalid, std::string(key) + ": " + *text + " is too large"};
    into = static_cast<Into>(*value);
  }
  return {};
}

// The same for amounts.
Result<void> read_amounts(const Line& line, std::string_view key, ResourceAmounts& into);

}  // namespace berth::sim
