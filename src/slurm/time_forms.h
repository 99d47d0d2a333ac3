#pragma once
// Times as Slurm reads and writes them.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/timestamp.h"

namespace berth::slurm {

inline constexpr std::int64_t kUnlimited = -1;

// Reads "90", "90:30", "1:30:00", "2-12", "2-12:30", "2-12:30:00", "UNLIMITED", "INFINITE" or "-1" as whole minutes,
// seconds rounded up. Returns kUnlimited for the last three and for 0, nothing for other text.
std::optional<std::int64_t> limit_minutes(std::string_view text);

// "0:05", "1:30:00", "2-12:30:00": as squeue shows a time.
std::string short_span(std::int64_t seconds);
// "00:00:05", "01:30:00", "2-12:30:00": as sacct and scontrol show it.
std::string long_span(std::int64_t seconds);

// "2026-11-29T11:58:57" in the zone of the reader.
std::string local_time(Timestamp time);
// "Sun Nov 29 11:58:57 2026", the same.
std::string date_line(Timestamp time);

// Which of several times is meant: a begin is ahead, what sacct lists is past.
enum class Look { kAhead, kBack };

// Reads "now", "now+2hours", "16:00", "4pm", "today", "tomorrow", "midnight", "noon", "teatime", "fika", "01/20",
// "01/20/27", "012027", "2027-01-20", "2027-01-20T16:00:00", in the zone of the reader. Ahead, a time of day that is
// over means tomorrow's, and a date without a year that is over means next year's. Back, a time of day is today's, and
// a date that is to come means last year's.
std::optional<Timestamp> instant(std::string_view text, Timestamp now, Look look = Look::kAhead);

}  // namespace berth::slurm
