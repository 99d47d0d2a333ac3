#include "model/document/price_document.h"

#include <doctest/doctest.h>

#include <algorithm>

namespace berth::document {
namespace {

constexpr std::string_view kBook =
    "currency: EUR\n"
    "prices:\n"
    "  - valid_from: 2026-11-01\n"
    "    gpus:\n"
    "      H100: {floor: 2.5, burst: 3.2, mig: {1g.10gb: 0.45}}\n"
    "    cpu_core: 0.02\n"
    "    memory_gib: 0.0031\n"
    "    lending_credit: 60\n"
    "    adjustments: {exclusive: 10, batch: -20}\n"
    "  - valid_from: 2026-12-01\n"
    "    gpus:\n"
    "      H100: {floor: 2.25, burst: 3}\n";

std::optional<TimeZone> some_zones(const std::string& name) {
  if (name == "UTC") return TimeZone{name, {{Timestamp{0}, 0}}};
  if (name == "Europe/Paris") return TimeZone{name, {{Timestamp{0}, 3600}}};
  return std::nullopt;
}

std::string error_in(const std::string& text) {
  const auto book = read_prices(text, "prices.yaml", some_zones);
  return book ? "" : book.error().message;
}

std::string with_change(const std::string& from, const std::string& to) {
  std::string text(kBook);
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("a price book is read exactly and written so that it reads back") {
  const auto book = read_prices(kBook, "prices.yaml", some_zones);
  REQUIRE(book.has_value());
  REQUIRE_EQ(book->periods.size(), 2);
  const PricePeriod& first = book->periods[0];
  CHECK_EQ(first.gpu("H100")->burst_micro, 3'200'000);
  CHECK_EQ(first.gpu("H100")->mig_micro.at(0).second, 450'000);
  CHECK_EQ(first.memory_micro, 3'100);
  CHECK_EQ(first.adjustments.at(1).percent, -20);
  CHECK_EQ(book->at(from_iso8601("2026-11-30T23:59:59Z").value()), &first);
  CHECK_EQ(book->at(from_iso8601("2026-12-01").value()), &book->periods[1]);
  CHECK(book->at(from_iso8601("2026-10-31").value()) == nullptr);
  CHECK(read_prices(prices_to_yaml(*book), "again", some_zones).value() == *book);
}

TEST_CASE("every mistake in a price book is told with its place") {
  const auto says = [](const std::string& text, const std::string& place, const std::string& words) {
    const std::string error = error_in(text);
    CAPTURE(error);
    CHECK(error.starts_with("prices.yaml:" + place));
    CHECK(error.find(words) != std::string::npos);
  };
  says(with_change("burst: 3.2", "burts: 3.2"), "5:", "there is no key 'burts'");
  says(with_change("burst: 3.2", "burst: -3.2"), "5:33: prices[0].gpus.H100.burst", "is negative");
  says(with_change("burst: 3.2", "burst: 3.20001"), "5:", "at most four decimals");
  says(with_change("burst: 3.2", "burst: 99999999999999999999"), "5:", "is no amount of money between 0 and 100000");
  says(with_change("burst: 3.2", "burst: 200000"), "5:", "between 0 and 100000");
  says(with_change("2026-12-01", "2026-11-01"), "10:", "two entries begin on 2026-11-01");
  says(with_change("2026-12-01", "2026-10-01"), "10:", "lies before 2026-11-01");
  says(with_change("2026-12-01", "2026-12-01T08:00:00Z"), "10:", "at midnight UTC");
  says(with_change("2026-12-01", "2026-11-31"), "10:", "'2026-11-31' is not a day; give one such as 2026-11-21");
  says(with_change("EUR", "ZZZ"), "1:11: currency", "is no currency in use");
  says(with_change("lending_credit: 60", "lending_credit: 160"), "8:", "100");
  says(with_change("batch: -20", "night: -20"), "9:", "known are exclusive");
  says("currency: EUR\nprices: []\n", "2:", "1 to 1000 entries");
}

TEST_CASE("differences of price books are told by day and path") {
  const PriceBook before = read_prices(kBook, "a", some_zones).value();
  const PriceBook after = read_prices(with_change("burst: 3.2", "burst: 3.5"), "b", some_zones).value();
  CHECK(diff_prices(before, after) == std::vector<std::string>{"~ 2026-11-01.gpus.H100.burst: 3.2000 -> 3.5000"});
  CHECK(diff_prices(before, before).empty());
  CHECK_EQ(diff_prices({}, before).front(), "+ 2026-11-01.adjustments.batch: -20");
}

TEST_CASE("off-peak windows are read, written, compared, and keep the clocks of their zones") {
  const std::string night = "{days: [fri, sat], from: 20:00, to: 08:00, zone: Europe/Paris, discount: 30}";
  const std::string text =
      with_change("lending_credit: 60", "off_peak: [" + night + ", {days: [wed], zone: UTC, discount: 50}]");
  const PriceBook book = read_prices(text, "a", some_zones).value();
  REQUIRE_EQ(book.periods[0].off_peak.size(), 2);
  const OffPeak read{{Weekday::kFriday, Weekday::kSaturday}, 1200, 480, "Europe/Paris", 30};
  CHECK(book.periods[0].off_peak[0] == read);
  CHECK(book.periods[0].off_peak[1] == OffPeak{{Weekday::kWednesday}, 0, kDayMinutes, "UTC", 50});
  REQUIRE_EQ(book.zones.size(), 2);
  CHECK(book.zones[0] == some_zones("Europe/Paris"));
  CHECK(read_prices(prices_to_yaml(book), "again", some_zones).value() == book);
  const auto changes = diff_prices(read_prices(kBook, "b", some_zones).value(), book);
  CHECK(std::find(changes.begin(), changes.end(), "+ 2026-11-01.off_peak[0].discount: 30") != changes.end());
  PriceBook summer = book;
  summer.zones[0].changes.push_back({from_iso8601("2027-03-28T01:00:00Z").value(), 7200});
  CHECK(diff_prices(book, summer) ==
        std::vector<std::string>{"~ zones.Europe/Paris: the clocks change otherwise from 2027-03-28T01:00:00.000Z on"});
}

TEST_CASE("every mistake in an off-peak window is told with its place") {
  const auto says = [](const std::string& window, const std::string& place, const std::string& words) {
    const std::string error = error_in(with_change("lending_credit: 60", "off_peak: [" + window + "]"));
    CAPTURE(error);
    CHECK(error.starts_with("prices.yaml:8:" + place));
    CHECK(error.find(words) != std::string::npos);
  };
  const std::string night = "{from: 20:00, to: 08:00, zone: Europe/Paris, discount: 30}";
  says("{zone: Europe/Pariss, discount: 30}", "23: prices[0].off_peak[0].zone", "'Europe/Pariss' is no time zone");
  says("{from: 20:00, to: 08:00, zone: UTC}", "16:", "discount is missing");
  says("{from: 20:00, discount: 30}", "16:", "zone is missing");
  says("{zone: UTC, discount: 130}", "38:", "100");
  says("{zone: UTC, discount: -30}", "38:", "100");
  says("{days: [sat, sat], zone: UTC, discount: 30}", "29:", "listed twice");
  says("{days: [satt], zone: UTC, discount: 30}", "24:", "did you mean 'sat'?");
  says("{days: [], zone: UTC, discount: 30}", "23:", "leave days out");
  says("{from: 24:00, zone: UTC, discount: 30}", "23:", "from 00:00 to 23:59");
  says("{from: 20:00, to: 25:00, zone: UTC, discount: 30}", "34:", "from 00:00 to 24:00");
  says("{from: 20:00, to: '23:59:60', zone: UTC, discount: 30}", "34:", "is no time of day");
  says("{from: 20:00, to: 20:00, zone: UTC, discount: 30}", "16:", "begins and ends at 20:00");
  says(night + ", {from: 07:00, to: 09:00, zone: Europe/Paris, discount: 10}", "76: prices[0].off_peak[1]",
       "overlaps off_peak[0] at 2026-11-01T06:00:00.000Z");
  says(night + ", {from: 06:00, to: 09:00, zone: UTC, discount: 10}", "76:", "overlaps off_peak[0]");
  says("{zone: UTC, discount: 81}", "15: prices[0].off_peak", "101 percent");
  CHECK_EQ(error_in(with_change("lending_credit: 60",
                                "off_peak: [" + night + ", {from: 07:00, to: 09:00, zone: UTC, discount: 10}]")),
           "");  // they touch at 07:00 UTC
}

TEST_CASE("without time zones a book is checked in what the zones do not change") {
  const std::string text =
      with_change("lending_credit: 60",
                  "off_peak: [{from: 20:00, to: 08:00, zone: X/Y, discount: 30}, {from: 07:00, zone: Z, discount: 1}]");
  CHECK(read_prices(text, "a", nullptr).has_value());
  CHECK_FALSE(read_prices(text, "a", some_zones).has_value());
}

TEST_CASE("money is written with four decimals, or six where it needs them") {
  CHECK_EQ(money_text(2'500'000), "2.5000");
  CHECK_EQ(money_text(-1), "-0.000001");
  CHECK_EQ(money_text(std::numeric_limits<std::int64_t>::min()), "-9223372036854.775808");
}

}  // namespace berth::document
