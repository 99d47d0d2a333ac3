#include "billing/rate.h"

#include "billing/ledger_story.h"

namespace berth::billing {
namespace {

constexpr std::int64_t kHour = 3'600'000;

PriceBook one_price() {
  PriceBook book{"EUR", {}};
  PricePeriod& period = book.periods.emplace_back();
  period.gpus = {{"H100", 2'000'000, 3'000'000, {}}};
  period.lending_credit_percent = 50;
  return book;
}

const Month kDay{"1970-01", Timestamp{0}, Timestamp{24 * kHour}};

Invoice invoice_of(const LedgerStory& story, const PriceBook& book, const std::string& queue, std::int64_t until_ms) {
  Ledger ledger(window_of(kDay, book));
  for (const EventRecord& event : story.events) ledger.apply(event);
  ledger.advance(Timestamp{until_ms});
  auto invoice = make_invoice(ledger, {queue, kDay, book, 1});
  REQUIRE(invoice.has_value());
  return std::move(*invoice);
}

std::int64_t amount_of(const Invoice& invoice, LineKind kind) {
  std::int64_t sum = 0;
  for (const InvoiceLine& line : invoice.lines) sum += line.kind == kind ? line.amount_micro : 0;
  return sum;
}

// Queue a holds 4 GPUs and uses 1; queue b borrows 2 of them for an hour.
LedgerStory lending() {
  LedgerStory story;
  story.configure(0, {{"a", 4}, {"b", 0}});
  story.add_node(0, 0, 4);
  story.submit(0, 1, "a");
  story.start(0, 1, 0, {0}, true);
  story.submit(0, 2, "b", "bob");
  story.start(0, 2, 0, {1, 2}, false);
  story.end(kHour, 2);
  return story;
}

}  // namespace

TEST_CASE("the holder pays for its floor, the borrower the burst price, and the lender is credited a part of it") {
  const LedgerStory story = lending();
  const Invoice a = invoice_of(story, one_price(), "a", kHour);
  CHECK_EQ(amount_of(a, LineKind::kFloorUsed), 2'000'000);
  CHECK_EQ(amount_of(a, LineKind::kFloorIdle), 2'000'000);
  CHECK_EQ(amount_of(a, LineKind::kFloorLent), 4'000'000);
  CHECK_EQ(amount_of(a, LineKind::kLendingCredit), -3'000'000);
  CHECK_EQ(a.total_micro, 5'000'000);
  CHECK_EQ(invoice_of(story, one_price(), "b", kHour).total_micro, 6'000'000);
  CHECK_EQ(invoice_of(story, one_price(), "", kHour).total_micro, 11'000'000);
}

TEST_CASE("jobs on their own floor beyond the guarantee cost no more than the floor") {
  LedgerStory story;
  story.configure(0, {{"a", 4}});
  story.add_node(0, 0, 8);
  story.submit(0, 1, "a");
  story.start(0, 1, 0, {0, 1, 2, 3, 4, 5}, false);
  const Invoice a = invoice_of(story, one_price(), "a", kHour);
  CHECK_EQ(amount_of(a, LineKind::kBurst), 18'000'000);
  CHECK_EQ(amount_of(a, LineKind::kLendingCredit), -12'000'000);
  CHECK_EQ(a.total_micro, 4 * 2'000'000 + 2 * 3'000'000);
}

TEST_CASE("a group of lines is rounded once, and its lines add up to it") {
  PriceBook book = one_price();
  book.periods[0].gpus[0].burst_micro = 100;  // a millisecond of a GPU is 0.00003 micro units
  LedgerStory story;
  story.add_node(0, 0, 8);
  for (std::uint64_t job = 1; job <= 7; ++job) {
    story.submit(0, job, "a");
    story.start(0, job, 0, {static_cast<std::uint8_t>(job)}, false);
  }
  const std::int64_t third = kHour / 300;  // of 1 micro unit for each job
  const Invoice invoice = invoice_of(story, book, "a", third);
  CHECK_EQ(invoice.total_micro, 2);  // 7/3 of a micro unit
  std::int64_t ones = 0;
  for (const InvoiceLine& line : invoice.lines) ones += line.amount_micro == 1 ? 1 : 0;
  CHECK_EQ(ones, 2);
  CHECK_EQ(at_detail(invoice, Detail::kUser).total_micro, 2);
  CHECK_EQ(at_detail(invoice, Detail::kUser).lines.size(), 1);
  CHECK_EQ(at_detail(invoice, Detail::kUser).lines[0].amount_micro, 2);
}

TEST_CASE("prices count from their day on") {
  PriceBook book = one_price();
  book.periods[0].valid_from = {2 * kHour};  // not a day: the ledger splits anywhere
  LedgerStory story;
  story.add_node(0, 0, 1);
  story.submit(0, 1, "a");
  story.start(kHour, 1, 0, {0}, false);
  const Invoice invoice = invoice_of(story, book, "a", 4 * kHour);
  REQUIRE_EQ(invoice.lines.size(), 2);
  CHECK_EQ(invoice.lines[0].unit_price_micro, 0);  // before the first prices
  CHECK_EQ(invoice.lines[1].amount_micro, 6'000'000);
}

TEST_CASE("what jobs use at off-peak times is discounted by a line of its own, and the floor costs the same") {
  PriceBook book = one_price();
  book.zones = {{"X/Y", {{Timestamp{0}, 2 * 3600}}}};  // ahead of UTC by two hours
  book.periods[0].off_peak = {{{}, 3 * 60, 4 * 60, "X/Y", 30}, {{}, 5 * 60, 6 * 60, "X/Y", 30}};  // from 01:00, 03:00
  LedgerStory story = lending();
  story.submit(kHour, 3, "b", "bob");
  story.start(kHour, 3, 0, {1}, false);
  story.end(kHour + kHour / 2, 3);
  story.submit(2 * kHour, 4, "b", "bob");
  story.start(2 * kHour, 4, 0, {1}, false);
  const Invoice b = invoice_of(story, book, "b", 5 * kHour);
  CHECK_EQ(amount_of(b, LineKind::kBurst), 6'000'000 + 1'500'000 + 9'000'000);
  CHECK_EQ(amount_of(b, LineKind::kDiscount), -450'000 - 900'000);
  REQUIRE_EQ(b.lines.size(), 5);  // three of jobs, and two of what was off
  CHECK_EQ(b.lines[4].cause, kOffPeak);
  CHECK_EQ(b.lines[4].quantity, 1000 * kHour);  // of the three hours that job 4 ran
  const Invoice a = invoice_of(story, book, "a", 5 * kHour);
  CHECK_EQ(amount_of(a, LineKind::kDiscount), -2 * 600'000);  // its own job, within the guarantee
  CHECK_EQ(amount_of(a, LineKind::kFloorUsed) + amount_of(a, LineKind::kFloorIdle) + amount_of(a, LineKind::kFloorLent),
           4 * 5 * 2'000'000);
  CHECK_EQ(a.lines.size(), 5);  // used, idle, lent, credited, and off: windows split no other line
}

TEST_CASE("what is looked ahead to is split at the prices and windows that begin until then") {
  PriceBook book = one_price();
  book.zones = {{"UTC", {{Timestamp{0}, 0}}}};
  book.periods[0].off_peak = {{{}, 2 * 60, 3 * 60, "UTC", 50}};
  PricePeriod dearer = book.periods[0];
  dearer.valid_from = {4 * kHour};
  dearer.gpus[0].burst_micro = 5'000'000;
  book.periods.push_back(dearer);
  LedgerStory story;
  story.add_node(0, 0, 1);
  story.submit(0, 1, "a");
  story.start(0, 1, 0, {0}, false);
  Ledger ahead(window_of(kDay, book));
  for (const EventRecord& event : story.events) ahead.apply(event);
  ahead.look_ahead(Timestamp{5 * kHour});
  const auto looked = make_invoice(ahead, {"", kDay, book, 1});
  REQUIRE(looked.has_value());
  CHECK_EQ(looked->total_micro, 4 * 3'000'000 - 1'500'000 + 5'000'000);
  CHECK_EQ(canonical_text(*looked), canonical_text(invoice_of(story, book, "", 5 * kHour)));
}

TEST_CASE("premiums and discounts are lines of their own") {
  PriceBook book = one_price();
  book.periods[0].adjustments = {{AdjustmentCause::kExclusive, 10}, {AdjustmentCause::kTraining, -20}};
  LedgerStory story;
  story.add_node(0, 0, 1);
  JobSubmitted job;
  job.job = JobId(1);
  job.spec.queue = "a";
  job.spec.exclusive = true;
  job.spec.groups.emplace_back();
  story.at(0, job);
  story.start(0, 1, 0, {0}, false);
  const Invoice invoice = invoice_of(story, book, "a", kHour);
  CHECK_EQ(amount_of(invoice, LineKind::kPremium), 300'000);
  CHECK_EQ(amount_of(invoice, LineKind::kDiscount), -600'000);
  CHECK_EQ(invoice.total_micro, 2'700'000);
}

TEST_CASE("a model that was there and has no price is refused by name") {
  LedgerStory story = lending();
  story.add_node(kHour, 1, 2, "B200");
  story.submit(kHour, 3, "b");
  story.start(kHour, 3, 1, {0}, false);
  Ledger ledger(window_of(kDay, one_price()));
  for (const EventRecord& event : story.events) ledger.apply(event);
  ledger.advance(Timestamp{2 * kHour});
  const auto invoice = make_invoice(ledger, {"", kDay, one_price(), 1});
  REQUIRE_FALSE(invoice.has_value());
  CHECK(invoice.error().message.find("B200") != std::string::npos);
}

TEST_CASE("a correction is a line of its own in the month in which it is made") {
  LedgerStory story = lending();
  story.at(kHour, BillCorrected{"b", "1969-12", JobId(2), -1'500'000, "node lost", "op"});
  const Invoice b = invoice_of(story, one_price(), "b", kHour);
  CHECK_EQ(b.total_micro, 4'500'000);
  CHECK_EQ(invoice_of(story, one_price(), "a", kHour).total_micro, 5'000'000);
  CHECK(canonical_text(b) != canonical_text(invoice_of(lending(), one_price(), "b", kHour)));
}

TEST_CASE("a reported quantity is a line of the month in which it lies, by the price at its begin") {
  PriceBook book = one_price();
  book.periods[0].quantities = {{"egress", "GiB", 50'000}, {"storage", "GiB-hours", 7}};
  PricePeriod later = book.periods[0];
  later.valid_from = {2 * kHour};
  later.quantities[0].price_micro = 60'000;
  book.periods.push_back(later);
  const auto report = [](const std::string& id, const std::string& kind, std::int64_t from, std::int64_t to) {
    return QuantityReported{id,  "b", kind, kind == "egress" ? "GiB" : "GiB-hours", 10, Timestamp{from}, Timestamp{to},
                            "op"};
  };
  LedgerStory story = lending();
  story.at(kHour, report("r-1", "egress", 0, kHour));
  story.at(3 * kHour, report("r-2", "egress", 2 * kHour, 3 * kHour));
  story.at(3 * kHour, report("r-3", "storage", 0, 3 * kHour));
  story.at(3 * kHour, report("of another month", "egress", -2, -1));
  const Invoice b = invoice_of(story, book, "b", 3 * kHour);
  CHECK_EQ(amount_of(b, LineKind::kReported), 500'000 + 600'000 + 70);
  CHECK_EQ(b.total_micro, 6'000'000 + 1'100'070);
  CHECK_EQ(amount_of(invoice_of(story, book, "a", 3 * kHour), LineKind::kReported), 0);
  CHECK(canonical_text(b).find("line\tb\treported\tstorage") != std::string::npos);
  CHECK(canonical_text(b).find("\tGiB-hours\t10\t0\t7\t70\tr-3\n") != std::string::npos);
  const auto kinds = bill_rows(b, BillBy::kKind, "");
  REQUIRE_EQ(kinds.size(), 2);
  CHECK_EQ(kinds[1].name, "reported");
  CHECK_EQ(at_detail(b, Detail::kQueue).total_micro, b.total_micro);
  const auto with_prices = [&](auto&& change) {
    PriceBook other = book;
    change(other.periods[1].quantities);
    Ledger ledger(window_of(kDay, other));
    for (const EventRecord& event : story.events) ledger.apply(event);
    return make_invoice(ledger, {"", kDay, other, 1}).error().message;
  };
  CHECK(with_prices([](auto& prices) { prices.erase(prices.begin()); }).find("egress") != std::string::npos);
  CHECK(with_prices([](auto& prices) { prices[0].unit = "GB"; }).find("reported in GiB") != std::string::npos);
  CHECK(with_prices([](auto& prices) { prices[0].price_micro = kMicro * kMicro * 2; }).find("r-2") !=
        std::string::npos);
}

TEST_CASE("a quantity that is reported after the month is on its bill") {
  PriceBook book = one_price();
  book.periods[0].quantities = {{"egress", "GiB", 50'000}};
  const LedgerStory story = lending();
  Ledger ledger(window_of(kDay, book));
  for (const EventRecord& event : story.events) ledger.apply(event);
  ledger.advance(kDay.end);
  const std::string before = canonical_text(*make_invoice(ledger, {"", kDay, book, 1}));
  ledger.add_report({"late", "a", "egress", "GiB", 2, Timestamp{0}, Timestamp{kHour}, "op"}, 99);
  ledger.add_report({"of the next day", "a", "egress", "GiB", 2, kDay.end, kDay.end + 1, "op"}, 100);
  const auto invoice = make_invoice(ledger, {"", kDay, book, 1});
  CHECK_EQ(amount_of(*invoice, LineKind::kReported), 100'000);
  CHECK(canonical_text(*invoice) != before);
}

TEST_CASE("a bill is summed up by user, job, model and label") {
  const LedgerStory story = lending();
  const Invoice all = invoice_of(story, one_price(), "", kHour);
  const auto users = bill_rows(all, BillBy::kUser, "");
  REQUIRE_EQ(users.size(), 3);
  CHECK_EQ(users[0].name, "bob");
  CHECK_EQ(users[0].amount_micro, 6'000'000);
  CHECK_EQ(users[0].burst, 2 * 1000 * kHour);
}

TEST_CASE("an estimate is the price of an hour at full size, and of the time limit") {
  JobSpec spec;
  TaskGroup& group = spec.groups.emplace_back();
  group.count = 2;
  group.request.gpus = 4;
  group.request.cpu_milli = 8000;
  spec.time_limit_s = 1800;
  PriceBook book = one_price();
  book.periods[0].cpu_micro = 10'000;
  const auto estimates = estimate_cost(spec, {"H100", "A100"}, book, Timestamp{kHour});
  REQUIRE_EQ(estimates.size(), 1);  // A100 has no price
  CHECK_EQ(estimates[0].burst_per_hour_micro, 24'000'000 + 160'000);
  CHECK_EQ(estimates[0].floor_per_hour_micro, 16'000'000 + 160'000);
  CHECK_EQ(estimates[0].burst_micro, 12'080'000);
  CHECK(estimate_cost(spec, {"H100"}, {}, Timestamp{kHour}).empty());
  book.zones = {{"UTC", {{Timestamp{0}, 0}}}};
  book.periods[0].off_peak = {{{}, 60 + 15, 3 * 60, "UTC", 40}};  // the second half of the time limit
  const auto cheaper = estimate_cost(spec, {"H100"}, book, Timestamp{kHour});
  CHECK_EQ(cheaper[0].burst_per_hour_micro, 24'160'000);
  CHECK_EQ(cheaper[0].burst_micro, 12'080'000 - 24'000'000 / 4 / 10 * 4);
}

TEST_CASE("what has no price is refused, or counts as nothing and is named") {
  PriceBook book = one_price();
  book.periods[0].quantities = {{"storage", "GiB-hours", kMostQuantityPriceMicro}};
  const auto invoices = [&](const LedgerStory& story) {
    Ledger ledger(window_of(kDay, book));
    for (const EventRecord& event : story.events) ledger.apply(event);
    ledger.advance(Timestamp{kHour});
    InvoiceQuestion question{"", kDay, book, 1};
    CHECK_FALSE(make_invoice(ledger, question).has_value());
    question.unpriced = Unpriced::kCountAsNothing;
    return make_invoice(ledger, question).value();
  };
  LedgerStory story = lending();
  story.at(kHour,
           QuantityReported{"r-1", "a", "storage", "GiB-hours", 1'000'000'000'000, Timestamp{0}, Timestamp{1}, "op"});
  CHECK(invoices(story).unpriced.find("report r-1 of 1000000000000 GiB-hours would cost more") != std::string::npos);
  CHECK_EQ(invoices(story).total_micro, 11'000'000);
  book.periods[0].quantities = {{"storage", "TiB-hours", 5}};
  CHECK(invoices(story).unpriced.find("were reported in GiB-hours (report r-1)") != std::string::npos);
  book.periods[0].quantities.clear();
  CHECK(invoices(story).unpriced.find("quantities of storage were reported") != std::string::npos);
  book.periods[0].gpus[0].model = "A100";
  const Invoice without = invoices(lending());
  CHECK(without.unpriced.find("GPUs of model H100 were there") != std::string::npos);
  CHECK_EQ(without.total_micro, 0);
  std::int64_t gpu_milli_ms = 0;
  for (const InvoiceLine& line : without.lines) gpu_milli_ms += line.user.empty() ? 0 : line.gpu_milli_ms;
  CHECK_EQ(gpu_milli_ms, 3 * 1000 * kHour);  // what the jobs have used is known all the same
}

}  // namespace berth::billing
