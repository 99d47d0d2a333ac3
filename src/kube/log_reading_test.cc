#include "kube/log_reading.h"

#include <doctest/doctest.h>

#include <limits>
#include <vector>

namespace berth::kube {
namespace {

struct Line {
  std::string time;
  std::string text;
};

// What a kubelet sends: lines of this time and later, with their times before them.
std::string served(const std::vector<Line>& lines, const LogPlace& place) {
  std::string all;
  for (const Line& line : lines) {
    if (place.time.empty() || line.time.substr(0, 19) >= place.time.substr(0, 19)) all += line.time + " " + line.text;
  }
  return all;
}

LogReading read(const std::vector<Line>& lines, const LogPlace& place, std::int64_t from, std::int64_t most,
                std::size_t piece = 7, bool is_cut = false) {
  LogReading reading(place, from, most, is_cut);
  const std::string all = served(lines, place);
  for (std::size_t at = 0; at < all.size(); at += piece) reading.take(std::string_view(all).substr(at, piece));
  return reading;
}

std::string at(int second, int nano) {
  std::string digits = std::to_string(nano);
  return "2026-11-25T16:00:" + std::string(second < 10 ? "0" : "") + std::to_string(second) + "." +
         std::string(9 - digits.size(), '0') + digits + "Z";
}

// Many lines in few seconds, some at the same time, one not in order, one very long.
std::vector<Line> a_log() {
  std::vector<Line> lines;
  for (int number = 0; number < 60; ++number)
    lines.push_back({at(number / 20, number / 3), "line " + std::to_string(number) + "\n"});
  std::swap(lines[30].time, lines[33].time);
  lines[40].text = std::string(500, 'x') + "\n";
  lines[41].text = "\n";
  return lines;
}

std::string text_of(const std::vector<Line>& lines) {
  std::string all;
  for (const Line& line : lines) all += line.text;
  return all;
}

}  // namespace

TEST_CASE("a log that is read part by part is the whole log, whatever the sizes") {
  const auto lines = a_log();
  for (const std::int64_t most : {1, 3, 10, 64, 1000}) {
    for (const std::size_t piece : {1U, 5U, 100U}) {
      CAPTURE(most);
      std::string all;
      LogPlace place;
      while (true) {
        const LogReading part = read(lines, place, static_cast<std::int64_t>(all.size()), most, piece);
        REQUIRE(part.found());
        REQUIRE_LE(part.bytes().size(), most);
        if (part.bytes().empty()) break;
        all += part.bytes();
        REQUIRE_LE(all.size(), text_of(lines).size());
        place = part.last();
        REQUIRE_LE(place.offset, all.size());
      }
      CHECK_EQ(all, text_of(lines));
    }
  }
}

TEST_CASE("a log that grows is followed without loss or repetition") {
  const auto lines = a_log();
  std::string all;
  LogPlace place;
  for (std::size_t there = 0; there <= lines.size(); ++there) {
    const LogReading part = read({lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(there)}, place,
                                 static_cast<std::int64_t>(all.size()), 10'000);
    REQUIRE(part.found());
    all += part.bytes();
    place = part.last();
  }
  CHECK_EQ(all, text_of(lines));
}

TEST_CASE("the end of a log is known without keeping it") {
  const LogReading reading = read(a_log(), {}, std::numeric_limits<std::int64_t>::max(), 0);
  CHECK(reading.bytes().empty());
  CHECK_EQ(reading.end(), text_of(a_log()).size());
}

TEST_CASE("a follower asks from the second of the line that it has read, and not from the beginning") {
  const LogReading part = read(a_log(), {}, 0, 10'000);
  CHECK_EQ(log_query(part.last()), "timestamps=true&sinceTime=2026-11-25T16:00:02Z");
  CHECK_EQ(log_query({}), "timestamps=true");
}

TEST_CASE("where the node has begun a new file, newer lines are gone on with") {
  const LogReading before = read(a_log(), {}, 0, 10'000);
  const std::vector<Line> fresh{{at(1, 5), "old\n"}, {at(2, 100), "new\n"}};
  const LogReading lost = read(fresh, before.last(), before.end(), 100);
  CHECK_FALSE(lost.found());
  CHECK(lost.bytes().empty());
  const LogReading again = read(fresh, before.last(), before.end(), 100, 7, true);
  CHECK_EQ(again.bytes(), "new\n");
}

TEST_CASE("a line without its end is given, and its rest follows") {
  std::vector<Line> lines{{at(1, 1), "a\n"}, {at(1, 2), "half"}};
  const LogReading first = read(lines, {}, 0, 100);
  CHECK_EQ(first.bytes(), "a\nhalf");
  lines[1].text = "half and half\n";
  CHECK_EQ(read(lines, first.last(), 6, 100).bytes(), " and half\n");
}

TEST_CASE("an answer without times or lines harms nothing") {
  for (const std::string& odd : {std::string(1000, 'x'), std::string("\n\n\n"), std::string(" "), std::string()}) {
    LogReading reading({}, 0, 100);
    reading.take(odd);
    CHECK_LE(reading.bytes().size(), 100);
  }
}

}  // namespace berth::kube
