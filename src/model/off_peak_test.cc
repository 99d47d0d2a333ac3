#include "model/off_peak.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "base/random.h"

namespace berth {
namespace {

// As in Paris in 2026: an hour more from 29 March to 25 October.
const TimeZone kParis{"Europe/Paris",
                      {{Timestamp{0}, 3600},
                       {from_iso8601("2026-03-29T01:00:00Z").value(), 7200},
                       {from_iso8601("2026-10-25T01:00:00Z").value(), 3600}}};

std::string spans_text(const OffPeak& window, const std::string& from, const std::string& to) {
  std::string text;
  for (const TimeSpan& span : spans_of(window, kParis, from_iso8601(from).value(), from_iso8601(to).value()))
    text += to_iso8601(span.begin).substr(5, 11) + ".." + to_iso8601(span.end).substr(5, 11) + " ";
  return text;
}

}  // namespace

TEST_CASE("a window over midnight belongs to the day on which it begins") {
  const OffPeak window{{Weekday::kSaturday}, 20 * 60, 8 * 60, "Europe/Paris", 30};
  CHECK_EQ(spans_text(window, "2026-11-27", "2026-12-01"), "11-28T19:00..11-29T07:00 ");
  CHECK_EQ(spans_text(window, "2026-11-29", "2026-12-01"), "11-29T00:00..11-29T07:00 ");  // cut at the edges
}

TEST_CASE("whole days that follow each other are one span") {
  const OffPeak weekend{{Weekday::kSaturday, Weekday::kSunday}, 0, kDayMinutes, "Europe/Paris", 30};
  CHECK_EQ(spans_text(weekend, "2026-11-24", "2026-12-01"), "11-27T23:00..11-29T23:00 ");
  CHECK_EQ(spans_text({{}, 0, kDayMinutes, "Europe/Paris", 30}, "2026-10-01", "2026-11-01"),
           "10-01T00:00..11-01T00:00 ");
}

TEST_CASE("an hour that is there twice counts twice, and one that is skipped not at all") {
  const OffPeak hour{{}, 2 * 60, 3 * 60, "Europe/Paris", 30};
  CHECK_EQ(spans_text(hour, "2026-10-24T12:00:00Z", "2026-10-25T12:00:00Z"), "10-25T00:00..10-25T02:00 ");
  CHECK_EQ(spans_text(hour, "2026-03-28T12:00:00Z", "2026-03-29T12:00:00Z"), "");
  const OffPeak half{{}, 2 * 60, 2 * 60 + 30, "Europe/Paris", 30};
  CHECK_EQ(spans_text(half, "2026-10-24T12:00:00Z", "2026-10-25T12:00:00Z"),
           "10-25T00:00..10-25T00:30 10-25T01:00..10-25T01:30 ");
  const OffPeak from_skipped{{}, 2 * 60 + 30, 4 * 60, "Europe/Paris", 30};
  CHECK_EQ(spans_text(from_skipped, "2026-03-28T12:00:00Z", "2026-03-29T12:00:00Z"), "03-29T01:00..03-29T02:00 ");
}

TEST_CASE("the spans of a window are the instants that lie in it, also when they are asked for in pieces") {
  const Timestamp begin = from_iso8601("2026-10-20").value();
  const Timestamp end = from_iso8601("2026-11-03").value();
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    OffPeak window{{}, random.between(0, kDayMinutes - 1), random.between(1, kDayMinutes), "Europe/Paris", 30};
    for (int day = 0; day < 7; ++day) {
      if (random.chance(400)) window.days.push_back(static_cast<Weekday>(day));
    }
    const auto spans = spans_of(window, kParis, begin, end);
    std::vector<TimeSpan> pieces;
    for (Timestamp at = begin; at < end;) {
      const Timestamp next = std::min(end, at + random.between(1, 30 * 3'600'000));
      for (const TimeSpan& span : spans_of(window, kParis, at, next)) {
        if (!pieces.empty() && pieces.back().end == span.begin)
          pieces.back().end = span.end;
        else
          pieces.push_back(span);
      }
      at = next;
    }
    CHECK(pieces == spans);
    for (Timestamp at = begin; at < end; at = at + random.between(1, 1'800'000)) {
      bool inside = false;
      for (const TimeSpan& span : spans) inside = inside || (at >= span.begin && at < span.end);
      CHECK_EQ(lies_in(window, kParis, at), inside);
    }
    for (const TimeSpan& span : spans) {
      CHECK(lies_in(window, kParis, span.begin));
      CHECK((span.end == end || !lies_in(window, kParis, span.end)));
      CHECK(lies_in(window, kParis, Timestamp{span.end.ms - 1}));
    }
  }
}

}  // namespace berth
