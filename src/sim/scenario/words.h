#pragma once
// The values in the lines of a scenario: amounts, times, lists, labels, ranges of names. Each is read exactly. Doubtful
// text is refused: an empty member of a list, a second colon, a number that would overflow.

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
#include "model/node_rule.h"
#include "sim/scenario/directives.h"

namespace berth::sim {

// Scenario time begins at zero; the core's time is then one day, because zero means "not set" there.
constexpr Timestamp kBegin{86'400'000};

// Returns the text in quotes, shortened if it is long.
std::string shown(std::string_view text);

std::vector<std::string> split(std::string_view text, char at);
// Returns the message for an unknown word: the known words, and the one that was probably meant.
std::string none_of(std::string_view word, std::span<const std::string_view> known);

// Returns milliseconds of "90s", "10m", "1h30m", "500ms"; at most 366 days, as everywhere in berth.
Result<std::int64_t> parse_duration(std::string_view text);
std::string duration_text(std::int64_t ms);

// As parse_duration, in whole seconds; fractions of a second are refused.
Result<std::int64_t> parse_seconds(std::string_view text);
// As parse_seconds, but refuses 0, for values where 0 would mean "not stated".
Result<std::int64_t> parse_some_seconds(std::string_view text);
// As parse_duration, but returns a point of scenario time.
Result<Timestamp> parse_instant(std::string_view text);
Result<bool> parse_on_off(std::string_view text);
// Returns a priority, of a class or of a job.
Result<std::int64_t> parse_priority(std::string_view text);
// Returns a count from 0 to 2147483647.
Result<std::int64_t> parse_count(std::string_view text);
// Returns a number from 1 to `most`; 0 would mean "not stated".
Result<std::int64_t> parse_some(std::string_view text, std::int64_t most);
// "8", "0.5": thousandths.
Result<std::int64_t> parse_milli(std::string_view text);
// "512GiB", "1.5TiB" in MiB.
Result<std::int64_t> parse_mib(std::string_view text);
// "gpus:8,cpus:64,memory:512GiB,H100:4"
Result<ResourceAmounts> parse_amounts(std::string_view text);
// Returns the members of "H100,A100". Empty and repeated members are refused.
Result<std::vector<std::string>> parse_list(std::string_view text);
Result<std::string> parse_name(std::string_view text);
// Returns the taints of "nvidia.com/gpu,team=a:NoExecute": keys with a value and an effect, if they have them.
Result<std::vector<Taint>> parse_taints(std::string_view text);
// As parse_list, for tolerations: the same words, and * for any key.
Result<std::vector<std::string>> parse_tolerations(std::string_view text);
// Returns the node rules of "zone=a|b,cores>16&&!spot": all of them must hold.
Result<std::vector<NodeRule>> parse_rules(std::string_view text);
// Names of images, sorted.
Result<std::vector<std::string>> parse_images(std::string_view text);
Result<std::string> parse_image(std::string_view text);
// "z1/b1/r1", of well-formed names.
Result<std::vector<std::string>> parse_path(std::string_view text);
// "app:web,tier:front", sorted by key; a value may be empty, as in "node-role.kubernetes.io/worker:".
Result<Labels> parse_labels(std::string_view text);
Result<Countables> parse_countables(std::string_view text);  // NAME:COUNT,...
// Returns the names of "n[1-4]": n1 n2 n3 n4, at most a hundred thousand. All must be well-formed.
Result<std::vector<std::string>> expand_names(std::string_view text);
// As expand_names, for several words together. Repeated names are refused.
Result<std::vector<std::string>> expand_all(const std::vector<std::string>& words);
// {0,1,2,5} is "0-2,5".
std::string ranges_text(const std::vector<std::uint8_t>& sorted);

// Reads `key` from the line into `into`; a value that is too large for it is refused.
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

// As read_option, for a word that names a value of an enumeration.
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
