#include "model/document/price_document.h"

#include <doctest/doctest.h>

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

std::string error_in(const std::string& text) {
  const auto book = read_prices(text, "prices.yaml");
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
  const auto book = read_prices(kBook, "prices.yaml");
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
  CHECK(read_prices(prices_to_yaml(*book), "again").value() == *book);
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
  says(with_change("EUR", "ZZZ"), "1:11: currency", "is no currency in use");
  says(with_change("lending_credit: 60", "lending_credit: 160"), "8:", "100");
  says(with_change("batch: -20", "night: -20"), "9:", "known are exclusive");
  says("currency: EUR\nprices: []\n", "2:", "1 to 1000 entries");
}

TEST_CASE("differences of price books are told by day and path") {
  const PriceBook before = read_prices(kBook, "a").value();
  const PriceBook after = read_prices(with_change("burst: 3.2", "burst: 3.5"), "b").value();
  CHECK(diff_prices(before, after) == std::vector<std::string>{"~ 2026-11-01.gpus.H100.burst: 3.2000 -> 3.5000"});
  CHECK(diff_prices(before, before).empty());
  CHECK_EQ(diff_prices({}, before).front(), "+ 2026-11-01.adjustments.batch: -20");
}

TEST_CASE("money is written with four decimals, or six where it needs them") {
  CHECK_EQ(money_text(2'500'000), "2.5000");
  CHECK_EQ(money_text(-1), "-0.000001");
  CHECK_EQ(money_text(std::numeric_limits<std::int64_t>::min()), "-9223372036854.775808");
}

}  // namespace berth::document
