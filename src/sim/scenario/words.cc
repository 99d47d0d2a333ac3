#include "sim/scenario/words.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>

#include "model/document/quantity.h"
#include "model/image.h"
#include "model/name.h"
#include "model/nearest.h"
#include "model/priority.h"
#include "model/resources.h"
#include "model/toleration.h"

namespace berth::sim {

namespace {

constexpr std::int64_t kMostSeconds = std::int64_t{366} * 86'400;
constexpr std::int64_t kMostNames = 100'000;

}  // namespace

std::string shown(std::string_view text) {
  constexpr std::size_t kMost = 80;
  return "'" + std::string(text.substr(0, kMost)) + (text.size() > kMost ? "...'" : "'");
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

std::string none_of(std::string_view word, std::span<const std::string_view> known) {
  std::string all;
  for (const std::string_view one : known) all += (all.empty() ? "" : ", ") + std::string(one);
  const auto meant = nearest(word, known);
  return shown(word) + " is none of " + all + (meant ? "; did you mean '" + std::string(*meant) + "'?" : "");
}

Result<std::int64_t> parse_priority(std::string_view text) {
  return document::parse_integer(text, kLeastPriority, kMostPriority);
}

Result<std::int64_t> parse_count(std::string_view text) {
  return document::parse_integer(text, 0, std::numeric_limits<std::int32_t>::max());
}

Result<std::int64_t> parse_some(std::string_view text, std::int64_t most) {
  return document::parse_integer(text, 1, most);
}

Result<std::int64_t> parse_milli(std::string_view text) {
  auto milli = document::parse_milli(text);
  if (milli && *milli / kMilli > std::numeric_limits<std::int32_t>::max())
    return invalid(shown(text) + " is too large");
  return milli;
}

Result<std::int64_t> parse_seconds(std::string_view text) {
  auto seconds = document::parse_duration_s(text);
  if (seconds && *seconds > kMostSeconds) return invalid(shown(text) + " is too long; 366d is the most");
  return seconds;
}

Result<std::int64_t> parse_some_seconds(std::string_view text) {
  auto seconds = parse_seconds(text);
  if (seconds && *seconds == 0) return invalid("1s is the least");
  return seconds;
}

Result<std::int64_t> parse_duration(std::string_view text) {
  if (text.ends_with("ms") && text.find_first_not_of("0123456789") == text.size() - 2) {
    return document::parse_integer(text.substr(0, text.size() - 2), 0, kMostSeconds * 1000);
  }
  const auto seconds = parse_seconds(text);
  if (!seconds) return seconds;
  return *seconds * 1000;
}

Result<Timestamp> parse_instant(std::string_view text) {
  const auto ms = parse_duration(text);
  if (!ms) return ms.error();
  return kBegin + *ms;
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

Result<std::int64_t> parse_mib(std::string_view text) { return document::parse_memory_mib(text); }

Result<ResourceAmounts> parse_amounts(std::string_view text) {
  ResourceAmounts amounts;
  std::set<std::string> seen;
  for (const std::string& part : split(text, ',')) {
    const auto pair = split(part, ':');
    if (pair.size() != 2 || pair.front().empty())
      return invalid(shown(part) + " is not RESOURCE:AMOUNT, such as gpus:8 or memory:512GiB");
    const std::string& name = pair.front();
    if (!seen.insert(name).second) return invalid(shown(name) + " is given twice");
    const auto amount = name == "memory" ? parse_mib(pair.back()) : parse_milli(pair.back());
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

namespace {

// Returns the first word that occurs twice.
std::optional<std::string> find_twice(const std::vector<std::string>& words) {
  std::set<std::string_view> seen;
  for (const std::string& word : words) {
    if (!seen.insert(word).second) return word;
  }
  return std::nullopt;
}

}  // namespace

Result<std::string> parse_name(std::string_view text) {
  if (!well_formed_name(text)) return invalid(shown(text) + " is not a name; " + std::string(kNameRule));
  return std::string(text);
}

Result<std::vector<std::string>> parse_path(std::string_view text) {
  auto parts = split(text, '/');
  if (std::find(parts.begin(), parts.end(), "") != parts.end())
    return invalid("there is an empty name in " + shown(text));
  for (const std::string& part : parts) {
    if (auto name = parse_name(part); !name) return name.error();
  }
  return parts;
}

Result<std::vector<std::string>> parse_list(std::string_view text) {
  auto parts = split(text, ',');
  if (std::find(parts.begin(), parts.end(), "") != parts.end())
    return invalid("there is an empty name in " + shown(text));
  if (const auto twice = find_twice(parts)) return invalid(shown(*twice) + " is given twice");
  return parts;
}

Result<std::vector<Taint>> parse_taints(std::string_view text) {
  const auto words = parse_list(text);
  if (!words) return words.error();
  std::vector<Taint> taints;
  for (const std::string& word : *words) {
    auto read = parse_toleration(word);
    if (!read) return read.error();
    if (read->key.empty()) return invalid(shown(word) + " is no taint; give its key");
    taints.push_back({read->key, read->value.value_or(""), read->effect.value_or(TaintEffect::kNoSchedule)});
  }
  return taints;
}

Result<std::vector<std::string>> parse_tolerations(std::string_view text) {
  auto words = parse_list(text);
  if (!words) return words;
  for (const std::string& word : *words) {
    if (const auto read = parse_toleration(word); !read) return read.error();
  }
  return words;
}

Result<std::vector<NodeRule>> parse_rules(std::string_view text) {
  const auto words = parse_list(text);
  if (!words) return words.error();
  std::vector<NodeRule> rules;
  for (const std::string& word : *words) {
    auto rule = parse_node_rule(word);
    if (!rule) return rule.error();
    rules.push_back(std::move(*rule));
  }
  return rules;
}

Result<std::string> parse_image(std::string_view text) {
  if (!well_formed_image(text))
    return invalid(shown(text) + " is not the name of an image; " + std::string(kImageRule));
  return std::string(text);
}

Result<std::vector<std::string>> parse_images(std::string_view text) {
  auto images = parse_list(text);
  if (!images) return images;
  for (const std::string& image : *images) {
    if (auto ok = parse_image(image); !ok) return ok.error();
  }
  std::sort(images->begin(), images->end());
  return images;
}

Result<Labels> parse_labels(std::string_view text) {
  Labels labels;
  for (const std::string& one : split(text, ',')) {
    const auto pair = split(one, ':');
    if (pair.size() != 2 || pair.front().empty()) return invalid(shown(one) + " is not KEY:VALUE");
    if (pair.front().find('=') != std::string::npos) return invalid(shown(one) + " is no label; its key has no '='");
    labels.emplace_back(pair.front(), pair.back());
  }
  std::sort(labels.begin(), labels.end());
  for (std::size_t i = 1; i < labels.size(); ++i) {
    if (labels[i].first == labels[i - 1].first) return invalid(shown(labels[i].first) + " is given twice");
  }
  return labels;
}

Result<Countables> parse_countables(std::string_view text) {
  const auto pairs = parse_labels(text);
  if (!pairs) return pairs.error();
  Countables countables;
  for (const auto& [name, amount] : *pairs) {
    const auto count = parse_count(amount);
    if (!count || *count == 0) return invalid(shown(amount) + " is no amount of " + shown(name) + "; write NAME:COUNT");
    countables.emplace_back(name, *count);
  }
  return countables;
}

namespace {

// "[1-4]", from the bracket on.
Result<std::pair<std::int64_t, std::int64_t>> parse_range(std::string_view text) {
  const auto ends = split(text.substr(1, text.size() - 1 - (text.ends_with(']') ? 1 : 0)), '-');
  const auto first = parse_count(ends.front());
  const auto last = parse_count(ends.back());
  if (!text.ends_with(']') || ends.size() != 2 || !first || !last)
    return invalid("is not NAME[FIRST-LAST], such as n[1-4]");
  if (*first > *last) return invalid("runs backwards; write the smaller number first");
  if (*last - *first >= kMostNames) return invalid("is more than " + std::to_string(kMostNames) + " names");
  return std::pair(*first, *last);
}

}  // namespace

Result<std::vector<std::string>> expand_names(std::string_view text) {
  std::vector<std::string> names;
  const std::size_t open = text.find('[');
  if (open == std::string_view::npos) {
    names.emplace_back(text);
  } else {
    const auto range = parse_range(text.substr(open));
    if (!range) return invalid(shown(text) + " " + range.error().message);
    const auto [first, last] = *range;
    for (std::int64_t i = first; i <= last; ++i) names.push_back(std::string(text.substr(0, open)) + std::to_string(i));
  }
  for (const std::string& one : {names.front(), names.back()}) {
    if (auto name = parse_name(one); !name) return name.error();
  }
  return names;
}

Result<std::vector<std::string>> expand_all(const std::vector<std::string>& words) {
  std::vector<std::string> all;
  for (const std::string& word : words) {
    const auto names = expand_names(word);
    if (!names) return names.error();
    if (static_cast<std::int64_t>(all.size() + names->size()) > kMostNames)
      return invalid("the line names more than " + std::to_string(kMostNames) + " nodes; share them out");
    all.insert(all.end(), names->begin(), names->end());
  }
  if (const auto twice = find_twice(all)) return invalid(shown(*twice) + " is named twice");
  return all;
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

Result<bool> parse_on_off(std::string_view text) {
  if (text == "on") return true;
  if (text == "off") return false;
  return invalid(shown(text) + " is neither on nor off");
}

}  // namespace berth::sim
