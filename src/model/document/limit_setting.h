#pragma once
// Limits of a queue as people write them in a command: `guaranteed.gpus=+100`, `max.memory=2TiB`, `weight=3`.

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/queue_edit.h"

namespace berth::document {

// Reads KEY=VALUE. The value is an amount in the unit of the key, +AMOUNT or -AMOUNT for more or less than what is in
// force, or `none` for no limit.
Result<LimitSetting> read_limit_setting(std::string_view text);

// "200", "64GiB", "2h", "none". Requires a key with a unit.
std::string limit_text(std::string_view key, std::optional<std::int64_t> value);

}  // namespace berth::document
