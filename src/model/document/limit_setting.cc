#include "model/document/limit_setting.h"

#include <vector>

#include "model/document/quantity.h"
#include "model/nearest.h"

namespace berth::document {

namespace {

Result<std::int64_t> read_amount(LimitUnit unit, std::string_view text) {
  switch (unit) {
    case LimitUnit::kThousandths:
      return parse_milli(text);
    case LimitUnit::kMemory:
      return parse_memory_mib(text);
    case LimitUnit::kCount:
      return parse_integer(text, 0, 1'000'000'000);
    case LimitUnit::kSeconds:
      return parse_duration_s(text);
  }
  return invalid("no unit");
}

Error no_such_limit(const std::string& key) {
  const std::vector<std::string> known = limit_keys();
  const auto near = nearest(key, std::vector<std::string_view>(known.begin(), known.end()));
  std::string text = "a command changes no '" + key.substr(0, 80) + "' of a queue";
  if (near) return invalid(text + "; did you mean '" + std::string(*near) + "'?");
  std::string all;
  for (const std::string& one : known) all += (all.empty() ? "" : ", ") + one;
  return invalid(text + "; it changes " + all);
}

}  // namespace

Result<LimitSetting> read_limit_setting(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0)
    return invalid("'" + std::string(text.substr(0, 80)) + "' is no KEY=VALUE, such as guaranteed.gpus=+8");
  LimitSetting setting;
  setting.key = std::string(text.substr(0, equals));
  std::string_view value = text.substr(equals + 1);
  const auto unit = unit_of_limit(setting.key);
  if (!unit) return no_such_limit(setting.key);
  if (value == "none") {
    setting.how = LimitSetting::How::kUnset;
    return setting;
  }
  const bool less = value.starts_with('-');
  if (less || value.starts_with('+')) {
    setting.how = LimitSetting::How::kBy;
    value.remove_prefix(1);
  }
  const auto amount = read_amount(*unit, value);
  if (!amount) return invalid(setting.key + ": " + amount.error().message);
  setting.amount = less ? -*amount : *amount;
  return setting;
}

std::string limit_text(std::string_view key, std::optional<std::int64_t> value) {
  if (!value) return "none";
  const std::string sign = *value < 0 ? "-" : "";
  const std::int64_t amount = *value < 0 ? -*value : *value;
  switch (unit_of_limit(key).value_or(LimitUnit::kCount)) {
    case LimitUnit::kThousandths:
      return sign + milli_text(amount);
    case LimitUnit::kMemory:
      return sign + memory_text(amount);
    case LimitUnit::kCount:
      return sign + std::to_string(amount);
    case LimitUnit::kSeconds:
      return sign + duration_text(amount);
  }
  return "";
}

}  // namespace berth::document
