#include "sim/trace/dates.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "sim/trace/fields.h"

namespace berth::sim {

namespace {

constexpr std::size_t kDateBytes = 19;  // without an offset
constexpr std::int64_t kDayMs = 86'400'000;

std::optional<std::int64_t> offset_ms(std::string_view text) {
  if (text == "Z") return 0;
  if (text.size() == 6 && text[3] == ':') {
    return offset_ms(std::string(text.substr(0, 3)).append(text.substr(4)));
  }
  if (text.size() != 5 || (text[0] != '+' && text[0] != '-')) return std::nullopt;
  const auto hours = parse_whole(text.substr(1, 2));
  const auto minutes = parse_whole(text.substr(3, 2));
  if (!hours || !minutes || *hours > 23 || *minutes > 59) return std::nullopt;
  const std::int64_t ms = (*hours * 60 + *minutes) * 60'000;
  return text[0] == '-' ? -ms : ms;
}

std::int64_t offset_at(const TimeZone& zone, std::int64_t ms) {
  const auto after = std::upper_bound(zone.changes.begin(), zone.changes.end(), ms,
                                      [](std::int64_t at, const ClockChange& change) { return at < change.from.ms; });
  return (after == zone.changes.begin() ? zone.changes.front() : *std::prev(after)).offset_s * 1000;
}

}  // namespace

bool states_offset(std::string_view text) { return text.size() > kDateBytes; }

Result<std::int64_t> date_ms(std::string_view text, const TimeZone* zone) {
  const auto shown = parse_date_ms(text.substr(0, kDateBytes));
  if (!shown) return invalid("not a date");
  if (states_offset(text)) {
    const auto offset = offset_ms(text.substr(kDateBytes));
    if (!offset) return invalid("not a date");
    return *shown - *offset;
  }
  if (zone == nullptr || zone->changes.empty()) return *shown;
  std::vector<std::int64_t> instants;
  for (const std::int64_t around : {*shown - kDayMs, *shown + kDayMs}) {
    const std::int64_t instant = *shown - offset_at(*zone, around);
    const bool known = std::find(instants.begin(), instants.end(), instant) != instants.end();
    if (!known && instant + offset_at(*zone, instant) == *shown) instants.push_back(instant);
  }
  if (instants.size() == 1) return instants.front();
  return invalid("the clocks of " + zone->name + (instants.empty() ? " skip that time" : " show that time twice") +
                 "; a date with its offset, as +01:00, is exact");
}

}  // namespace berth::sim
