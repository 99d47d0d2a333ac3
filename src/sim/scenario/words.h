#pragma once
// The values of a scenario's lines: amounts, times, lists, labels, ranges of names. Each is exact, and nothing is read
// that is not meant so: an empty member of a list, a second colon, a number that would wrap.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/timestamp.h"
#include "model/cluster_config.h"
#include "model/node.h"
#include "sim/scenario/directives.h"

namespace berth::sim {

// Scenario time begins at zero, the core's a day later: zero means "not set" there.
constexpr Timestamp kBegin{86'400'000};

// In quotes, and the first of it if it is long.
std::string shown(std::string_view text);

std::vector<std::string> split(std::string_view text, char at);
// What to say of a word that is not among the known ones: those, and the one that was meant.
std::string none_of(std::string_view word, std::span<const std::string_view> known);

// "90s", "10m", "1h30m", "500ms" in milliseconds; 366 days at most, as everywhere in berth.
Result<std::int64_t> parse_duration(std::string_view text);
std::string duration_text(std::int64_t ms);

// The same in seconds, and none below.
Result<std::int64_t> parse_seconds(std::string_view text);
// For what would mean "not stated" if it were 0.
Result<std::int64_t> parse_some_seconds(std::string_view text);
// The same as a point of scenario time.
Result<Timestamp> parse_instant(std::string_view text);
Result<bool> parse_on_off(std::string_view text);
// Of a class, or given to a job.
Result<std::int64_t> parse_priority(std::string_view text);
// Not below zero, and no larger than a count may be: 2147483647.
Result<std::int64_t> parse_count(std::string_view text);
// From 1 on; 0 would mean "not stated".
Result<std::int64_t> parse_some(std::string_view text, std::int64_t most);
// "8", "0.5": thousandths.
Result<std::int64_t> parse_milli(std::string_view text);
// "512GiB", "1.5TiB" in MiB.
Result<std::int64_t> parse_mib(std::string_view text);
// "gpus:8,cpus:64,memory:512GiB,H100:4"
Result<ResourceAmounts> parse_amounts(std::string_view text);
// "H100,A100": none is empty, none stands there twice.
Result<std::vector<std::string>> parse_list(std::string_view text);
Result<std::string> parse_name(std::string_view text);
// The same, of keys of taints: "nvidia.com/gpu"; who names those is free.
Result<std::vector<std::string>> parse_taints(std::string_view text);
// Names of images, sorted.
Result<std::vector<std::string>> parse_images(std::string_view text);
Result<std::string> parse_image(std::string_view text);
// "z1/b1/r1", of well-formed names.
Result<std::vector<std::string>> parse_path(std::string_view text);
// "app:web,tier:front", sorted by key; a value may be empty, as in "node-role.kubernetes.io/worker:".
Result<Labels> parse_labels(std::string_view text);
// "n[1-4]" is n1 n2 n3 n4, a hundred thousand at most; all are well-formed names.
Result<std::vector<std::string>> expand_names(std::string_view text);
// All of several such words; none stands there twice, and they are not more than that.
Result<std::vector<std::string>> expand_all(const std::vector<std::string>& words);
// {0,1,2,5} is "0-2,5".
std::string ranges_text(const std::vector<std::uint8_t>& sorted);

// Reads `key` from the line into `into`; what that cannot hold is refused.
template <class Parse, class Into>
Result<void> read_option(const Line& line, std::string_view key, Parse&& parse, Into& into) {
  const std::string* text = line.option(key);
  if (text == nullptr) return {};
  const auto value = parse(*text);
  if (!value) return Error{ErrorCode::kInvalid, std::string(key) + ": " + value.error().message};
  if constexpr (!std::is_arithmetic_v<Into> || std::is_same_v<Into, bool>) {
    into = *value;
  } else {
    if (!std::in_range<Into>(*value))
      return Error{ErrorCode::kInvalid, std::string(key) + ": " + shown(*text) + " is too large"};
    into = static_cast<Into>(*value);
  }
  return {};
}

// The same for a word that names a value of an enumeration.
template <class Enum>
Result<void> read_enum(const Line& line, std::string_view key, Enum& into) {
  const std::string* text = line.option(key);
  if (text == nullptr) return {};
  const auto known = enum_from_name<Enum>(*text);
  if (!known) return Error{ErrorCode::kInvalid, std::string(key) + ": " + none_of(*text, EnumNames<Enum>::kNames)};
  into = *known;
  return {};
}

}  // namespace berth::sim
