#include "control/money.h"

#include <doctest/doctest.h>

#include "control/hand_driven_fleet.h"
#include "model/month.h"

namespace berth::control {
namespace {

PriceBook book_with(const std::string& model) {
  PriceBook book{"EUR", {}};
  book.periods.emplace_back().gpus = {{model, 2'000'000, 3'000'000, {}}};
  return book;
}

PriceBook book_with_storage() {
  PriceBook book = book_with("H100");
  book.periods[0].valid_from = from_iso8601("2026-01-01").value();
  book.periods[0].quantities = {{"storage", "GiB-hours", 100}};
  return book;
}

QuantityReported stored(const std::string& id) {
  return {id, "a", "storage", "", 5, from_iso8601("2026-11-01").value(), from_iso8601("2026-11-02").value(), "op"};
}

struct BilledFleet : HandDrivenFleet {
  BilledFleet() {
    now = from_iso8601("2026-11-15").value();
    QueueConfig limited = queue("a");
    limited.budget = BudgetConfig{0, 1000, BudgetAction::kStopStarting};
    configure({limited, queue("b")});
    command(RegisterNode{node("n1")});
  }
  BudgetMarked mark(std::int32_t percent) const {
    const Month month = month_at(now);
    return {"a", percent, month.name, month.end, 1200, 1000};
  }
  bool stops(const std::string& path, BudgetAction what) const {
    return state.queue_at(path)->stopped_by(what) != nullptr;
  }
  // Gives `b` a grant, beside a budget of the same size.
  void grant(BudgetConfig grant) {
    QueueConfig granted = queue("b");
    granted.budget = BudgetConfig{0, grant.gpu_milli_hours, BudgetAction::kTell};
    granted.grant = grant;
    configure({queue("a"), granted});
  }
  BudgetMarked mark_of_grant(std::int32_t percent, bool ended = false) const {
    const BudgetConfig& grant = state.queue_at("b")->budget(BudgetKind::kGrant)->config;
    return {"b", percent, "", grant.until, 1200, grant.limit(), BudgetKind::kGrant, ended};
  }
  bool survives_a_checkpoint() const {
    const auto loaded = state::State::load(state.save());
    return loaded.has_value() && loaded->digest() == state.digest() && loaded->save() == state.save();
  }
};

}  // namespace

TEST_CASE("prices have a version, and leave out no GPU model of a node") {
  BilledFleet fleet;
  CHECK_EQ(fleet.command(ApplyPrices{book_with("H100"), "op"}).version, 1);
  CHECK(fleet.command(ApplyPrices{book_with("H100"), "op"}).unchanged);
  const auto refused = fleet.try_command(ApplyPrices{book_with("A100"), "op"});
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().message.find("H100") != std::string::npos);
  CHECK(fleet.command(ApplyPrices{book_with("H100"), "op", 7}).stale);
  CHECK(fleet.survives_a_checkpoint());
}

TEST_CASE("prices that would leave something of an open month without a price are refused with the place") {
  BilledFleet fleet;
  fleet.command(ApplyPrices{book_with_storage(), "op"});
  fleet.command(ReportQuantities{{stored("r-1"), stored("r-2")}});
  const auto says = [&](const PriceBook& book, const std::string& what) {
    const auto refused = fleet.try_command(ApplyPrices{book, "op"});
    REQUIRE_FALSE(refused.has_value());
    CAPTURE(refused.error().message);
    CHECK(refused.error().message.starts_with(what));
  };
  PriceBook book = book_with_storage();
  book.periods[0].quantities.clear();
  says(book,
       "prices[0].quantities.storage: report r-1 of 2026-11, which is not closed, is of storage in GiB-hours, and");
  book = book_with_storage();
  book.periods[0].quantities[0].unit = "TiB-hours";
  says(book, "prices[0].quantities.storage.unit: report r-1 of 2026-11, which is not closed, is in GiB-hours, not in");
  PriceBook dear = book_with_storage();
  dear.periods[0].quantities[0].price_micro = kMostQuantityPriceMicro;
  fleet.command(ApplyPrices{dear, "op"});
  QuantityReported much = stored("r-3");
  much.quantity = 10'000;
  fleet.command(ReportQuantities{{much}});
  fleet.command(ApplyPrices{book_with_storage(), "op"});
  much.id = "r-4";
  much.quantity = 10'001;
  fleet.command(ReportQuantities{{much}});
  says(dear,
       "prices[0].quantities.storage.price: report r-4 of 2026-11, which is not closed, of 10001 GiB-hours would");
  // An entry that is over needs nothing that is there now, one that is or comes into force does.
  PriceBook two = book_with_storage();
  two.periods.insert(two.periods.begin(), book_with("A100").periods[0]);
  fleet.command(ApplyPrices{two, "op"});
  two.periods[1].gpus[0].model = "A100";
  two.periods.push_back(book_with_storage().periods[0]);
  two.periods[2].valid_from = from_iso8601("2027-01-01").value();
  says(two, "prices[1].gpus: nodes have GPUs of H100, and these prices have none for it");
}

TEST_CASE("what the prices in force price in a month that is not closed stays priced") {
  BilledFleet fleet;
  const auto from = [](const char* day) {
    PriceBook book = book_with("H100");
    book.periods[0].valid_from = from_iso8601(day).value();
    return book;
  };
  const auto says = [&](const char* day, const char* first_use) {
    const auto mistakes = price_mistakes(fleet.state, from(day), fleet.now, from_iso8601(first_use).value());
    return mistakes.empty() ? "" : mistakes[0].path + ": " + mistakes[0].message;
  };
  fleet.command(ApplyPrices{from("2027-02-01"), "op"});
  fleet.command(ApplyPrices{from("2027-03-01"), "op"});  // nothing is priced yet
  fleet.command(ApplyPrices{from("2026-01-01"), "op"});
  const auto refused = fleet.try_command(ApplyPrices{from("2026-12-01"), "op"});
  REQUIRE_FALSE(refused.has_value());
  CHECK_EQ(refused.error().message,
           "prices[0].valid_from: prices begin at 2026-12-01, and 2026-11, which is not closed, is priced from "
           "2026-11-01 by the book in force; keep those entries");
  CHECK_EQ(says("2026-11-01", "2026-11-10"), "");
  CHECK_EQ(says("2026-11-10", "2026-11-10T08:00Z"), "");
  CHECK(says("2026-11-11", "2026-11-10T08:00Z").starts_with("valid_from: prices begin at 2026-11-11, and 2026-11, "));
  CHECK(says("2026-11-01", "2026-10-31").find("and 2026-10, which is not closed") != std::string::npos);
  fleet.command(CloseMonth{{.month = "2026-10", .price_version = 1, .hash = "h", .user = "op"}});
  CHECK_EQ(says("2026-11-01", "2026-10-31"), "");
  CHECK_FALSE(says("2026-11-02", "2026-10-31").empty());
  CHECK_FALSE(says("2026-11-01", "2026-09-30").empty());
  fleet.command(ApplyPrices{from("2026-11-01"), "op"});
}

TEST_CASE("a report of a month that is not closed stays priced, also from before the first use") {
  BilledFleet fleet;
  fleet.command(ApplyPrices{book_with_storage(), "op"});
  QuantityReported october = stored("r-1");
  october.from = from_iso8601("2026-10-01").value();
  october.to = from_iso8601("2026-10-02").value();
  fleet.command(ReportQuantities{{october}});
  PriceBook later = book_with_storage();
  later.periods[0].valid_from = from_iso8601("2026-11-01").value();
  const auto mistakes = price_mistakes(fleet.state, later, fleet.now, from_iso8601("2026-11-03").value());
  REQUIRE_EQ(mistakes.size(), 1);
  CHECK(mistakes[0].message.find("and 2026-10, which is not closed, is priced from 2026-10-01") != std::string::npos);
}

TEST_CASE("the currency stays while a queue has a budget or a grant in it") {
  BilledFleet fleet;
  fleet.command(ApplyPrices{book_with("H100"), "op"});
  QueueConfig limited = HandDrivenFleet::queue("a");
  limited.budget = BudgetConfig{5'000'000, 0, BudgetAction::kTell};
  fleet.configure({limited, HandDrivenFleet::queue("b")});
  PriceBook dollars = book_with("H100");
  dollars.currency = "USD";
  const auto refused = fleet.try_command(ApplyPrices{dollars, "op"});
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().message.starts_with("currency: the budget of queue a is in EUR; take"));
  limited.budget.reset();
  limited.grant = BudgetConfig{5'000'000, 0, BudgetAction::kTell, from_iso8601("2026-11-01").value(),
                               from_iso8601("2027-11-01").value()};
  fleet.configure({limited, HandDrivenFleet::queue("b")});
  CHECK(fleet.try_command(ApplyPrices{dollars, "op"})
            .error()
            .message.starts_with("currency: the grant of queue a is in EUR; take the grants in money away"));
  fleet.configure({HandDrivenFleet::queue("a"), HandDrivenFleet::queue("b")});
  fleet.command(ApplyPrices{dollars, "op"});
}

TEST_CASE("a correction has no currency before there are prices") {
  BilledFleet fleet;
  const auto refused = fleet.try_command(CorrectBill{{"a", "2026-10", JobId::none(), -5, "node lost", "op"}});
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == ErrorCode::kConflict);
  CHECK(refused.error().message.starts_with("no prices are in force yet, and so no currency"));
}

TEST_CASE("a month is closed once, when it is over") {
  BilledFleet fleet;
  CHECK_FALSE(fleet.try_command(CloseMonth{{.month = "2026-11", .hash = "", .user = "op"}}).has_value());
  CHECK_FALSE(fleet.try_command(CloseMonth{{.month = "2026-13", .hash = "", .user = "op"}}).has_value());
  fleet.command(CloseMonth{{.month = "2026-10", .price_version = 1, .hash = "h", .user = "op"}});
  CHECK_FALSE(fleet.try_command(CloseMonth{{.month = "2026-10", .hash = "", .user = "op"}}).has_value());
  CHECK(fleet.survives_a_checkpoint());
}

TEST_CASE("a correction with a key counts once, and the key is of no other one") {
  BilledFleet fleet;
  fleet.command(ApplyPrices{book_with("H100"), "op"});
  const BillCorrected refund{"a", "2026-10", JobId(3), -5, "node lost", "op", "k1"};
  CHECK_FALSE(fleet.command(CorrectBill{refund}).repeated);
  const Seq before = fleet.state.last_seq();
  CHECK(fleet.command(CorrectBill{refund}).repeated);
  CHECK(fleet.survives_a_checkpoint());
  CHECK(fleet.command(CorrectBill{refund}).repeated);
  CHECK_EQ(fleet.state.last_seq(), before);
  BillCorrected other = refund;
  other.amount_micro = -6;
  const auto refused = fleet.try_command(CorrectBill{other});
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().message.find("-0.000005 for 2026-10 on queue a") != std::string::npos);
  other.user = "another";  // its own keys
  CHECK_FALSE(fleet.command(CorrectBill{other}).repeated);
  other.key.clear();
  CHECK_FALSE(fleet.command(CorrectBill{other}).repeated);
  CHECK_FALSE(fleet.command(CorrectBill{other}).repeated);
}

TEST_CASE("a reported quantity counts once, takes the unit of the prices, and lasts over a checkpoint") {
  BilledFleet fleet;
  CHECK_FALSE(fleet.try_command(ReportQuantities{{stored("r-1")}}).has_value());  // no prices yet
  fleet.command(ApplyPrices{book_with_storage(), "op"});
  CHECK_EQ(fleet.command(ReportQuantities{{stored("r-1"), stored("r-2"), stored("r-1")}}).reported, 2);
  CHECK_EQ(fleet.state.quantity_reports().at("r-1").unit, "GiB-hours");
  const Seq before = fleet.state.last_seq();
  CHECK_EQ(fleet.command(ReportQuantities{{stored("r-2")}}).reported, 0);
  CHECK_EQ(fleet.state.last_seq(), before);
  CHECK(fleet.survives_a_checkpoint());
  QuantityReported more = stored("r-2");
  more.quantity = 6;
  const auto refused = fleet.try_command(ReportQuantities{{stored("r-3"), more}});
  REQUIRE_FALSE(refused.has_value());
  CHECK(
      refused.error().message.starts_with("quantities[1].id: r-2 was reported as 5 GiB-hours of storage for queue a"));
  CHECK_FALSE(fleet.state.quantity_reports().contains("r-3"));  // all of them or none
}

TEST_CASE("a report that breaks a rule is refused with what would be right") {
  BilledFleet fleet;
  fleet.command(ApplyPrices{book_with_storage(), "op"});
  const auto says = [&](auto&& change, const std::string& words) {
    QuantityReported report = stored("r");
    change(report);
    const auto refused = fleet.try_command(ReportQuantities{{report}});
    REQUIRE_FALSE(refused.has_value());
    CAPTURE(refused.error().message);
    CHECK(refused.error().message.find(words) != std::string::npos);
  };
  says([](auto& r) { r.id = "with space"; }, "quantities[0].id: give each report an id");
  says([](auto& r) { r.queue = "nosuch"; }, "no such queue 'nosuch'");
  says([](auto& r) { r.queue = ""; }, "name the queue");
  says([](auto& r) { r.kind = "tape"; }, "known are storage (GiB-hours)");
  says([](auto& r) { r.unit = "TiB-hours"; }, "is priced by GiB-hours, not by 'TiB-hours'");
  says([](auto& r) { r.quantity = 0; }, "a whole number between 1 and");
  says([](auto& r) { r.quantity = -5; }, "a whole number between 1 and");
  says([](auto& r) { r.quantity = 100'000'000'001; }, "would cost more than 10000000");
  says([](auto& r) { r.to = r.from; }, "lies not after from");
  says([](auto& r) { r.to = from_iso8601("2026-11-16").value(); }, "is still to come");
  says([](auto& r) { r.from = from_iso8601("2026-10-31").value(); }, "split the report at 2026-11-01T00:00:00.000Z");
  says([](auto& r) { r.from = from_iso8601("2025-10-01").value(), r.to = r.from + 1; },
       "no prices were in force at 2025-10-01T00:00:00.000Z; the first ones are of 2026-01-01");
}

TEST_CASE("a report for a closed month is refused with the correction that would be right") {
  BilledFleet fleet;
  fleet.command(ApplyPrices{book_with_storage(), "op"});
  QuantityReported october = stored("r-1");
  october.from = from_iso8601("2026-10-01").value();
  october.to = from_iso8601("2026-10-02").value();
  fleet.command(ReportQuantities{{october, stored("r-2")}});
  MonthClosed closing{.month = "2026-10", .price_version = 1, .hash = "h", .user = "op"};
  const auto meanwhile = fleet.try_command(CloseMonth{closing});  // billed before r-1 was reported
  REQUIRE_FALSE(meanwhile.has_value());
  CHECK(meanwhile.error().message.find("close it again") != std::string::npos);
  closing.reports = 1;
  fleet.command(CloseMonth{closing});
  CHECK_FALSE(fleet.state.quantity_reports().contains("r-1"));
  CHECK(fleet.state.quantity_reports().contains("r-2"));
  CHECK(fleet.survives_a_checkpoint());
  october.id = "r-3";
  const auto refused = fleet.try_command(ReportQuantities{{october}});
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().message.find("berth bill a --month 2026-10 --correct 0.0005 --reason 'r-3'") !=
        std::string::npos);
}

TEST_CASE("the mark of a budget is told once, lasts over a checkpoint, and ends with the budget") {
  BilledFleet fleet;
  fleet.command(MarkBudget{fleet.mark(100)});
  CHECK(fleet.command(MarkBudget{fleet.mark(100)}).unchanged);
  CHECK(fleet.stops("a", BudgetAction::kStopStarting));
  CHECK_FALSE(fleet.stops("a", BudgetAction::kStopBorrowing));
  CHECK(fleet.survives_a_checkpoint());
  fleet.command(MarkBudget{fleet.mark(0)});
  CHECK_FALSE(fleet.stops("a", BudgetAction::kStopStarting));
  fleet.command(MarkBudget{fleet.mark(100)});
  fleet.configure({HandDrivenFleet::queue("a"), HandDrivenFleet::queue("b")});
  CHECK_FALSE(fleet.stops("a", BudgetAction::kStopStarting));
  CHECK(fleet.command(MarkBudget{fleet.mark(100)}).unchanged);  // it was changed in between
}

namespace {

BudgetConfig grant_until(const char* day, BudgetAction action = BudgetAction::kStopBorrowing) {
  return {0, 1000, action, from_iso8601("2026-11-10").value(), from_iso8601(day).value()};
}

}  // namespace

TEST_CASE("a grant has marks of its own, and ends once, when it is over") {
  BilledFleet fleet;
  fleet.grant(grant_until("2026-12-01"));
  fleet.command(MarkBudget{fleet.mark_of_grant(80)});
  CHECK(fleet.command(MarkBudget{fleet.mark_of_grant(80)}).unchanged);
  CHECK_EQ(fleet.state.queue_at("b")->budget(BudgetKind::kBudget)->mark.percent, 0);
  CHECK_FALSE(fleet.stops("b", BudgetAction::kStopBorrowing));
  CHECK(fleet.survives_a_checkpoint());
  CHECK(fleet.command(MarkBudget{fleet.mark_of_grant(80, true)}).unchanged);  // it is not over yet
  fleet.now = from_iso8601("2026-12-01").value();
  fleet.command(MarkBudget{fleet.mark_of_grant(80, true)});
  CHECK(fleet.command(MarkBudget{fleet.mark_of_grant(80, true)}).unchanged);
  CHECK(fleet.stops("b", BudgetAction::kStopBorrowing));
  CHECK_FALSE(fleet.stops("b", BudgetAction::kStopStarting));
  CHECK(fleet.survives_a_checkpoint());
}

TEST_CASE("the mark of a grant that was changed meanwhile says nothing") {
  BilledFleet fleet;
  fleet.grant(grant_until("2026-11-14"));
  const BudgetMarked old = fleet.mark_of_grant(100, true);
  fleet.grant(grant_until("2026-12-24"));
  CHECK(fleet.command(MarkBudget{old}).unchanged);
  fleet.command(MarkBudget{fleet.mark_of_grant(100)});
  CHECK(fleet.stops("b", BudgetAction::kStopBorrowing));
  fleet.grant(grant_until("2026-12-24", BudgetAction::kTell));  // and a mark of the former one is gone
  CHECK_EQ(fleet.state.queue_at("b")->budget(BudgetKind::kGrant)->mark, BudgetMark());
  BudgetMarked ends = old;  // a budget has no end
  ends.of = BudgetKind::kBudget;
  CHECK(fleet.command(MarkBudget{ends}).unchanged);
}

TEST_CASE("a new budget or grant whose use would not be known is refused with what would be right") {
  BilledFleet fleet;
  const Timestamp begin = from_iso8601("2026-11-12T08:00Z").value();
  const auto says = [&](std::optional<BudgetConfig> budget, std::optional<BudgetConfig> grant) {
    ClusterConfig config = fleet.state.file_config();
    config.queues[0].budget = budget;
    config.queues[0].grant = grant;
    const auto told = fleet.try_command(ApplyConfig{config, "op", {}, begin});
    return told ? std::string() : told.error().message;
  };
  const BudgetConfig money{5'000'000, 0, BudgetAction::kTell};
  CHECK(says(money, {}).starts_with("queue 'a'.budget.money: no prices are in force"));
  BudgetConfig paid = grant_until("2026-12-01");
  CHECK_EQ(says({}, paid),
           "queue 'a'.grant.from: 2026-11-10T00:00:00.000Z lies before the first event of the log, of "
           "2026-11-12T08:00:00.000Z, so what was used then is not known; begin it at 2026-11-12 or later");
  paid.from = from_iso8601("2026-11-12").value();
  std::swap(paid.money_micro, paid.gpu_milli_hours);
  CHECK(says({}, paid).starts_with("queue 'a'.grant.money: no prices are in force"));
  fleet.command(ApplyPrices{book_with("H100"), "op"});
  CHECK_EQ(says(money, paid), "");
}

TEST_CASE("a correction names its month, its queue and why") {
  BilledFleet fleet;
  fleet.command(ApplyPrices{book_with("H100"), "op"});
  fleet.command(CorrectBill{{"a", "2026-10", JobId::none(), -5, "node lost", "op"}});
  for (const BillCorrected& wrong : {BillCorrected{"a", "2026", JobId::none(), -5, "x", "op"},
                                     BillCorrected{"c", "2026-10", JobId::none(), -5, "x", "op"},
                                     BillCorrected{"a", "2026-10", JobId::none(), 0, "x", "op"},
                                     BillCorrected{"a", "2026-10", JobId::none(), -5, "", "op"},
                                     BillCorrected{"a", "2026-10", JobId::none(), -5, "two\nlines", "op"},
                                     BillCorrected{"a", "2026-10", JobId::none(), -5, "  ", "op"},
                                     BillCorrected{"a", "2026-10", JobId::none(), -5, "a\u202eb", "op"}})
    CHECK_FALSE(fleet.try_command(CorrectBill{wrong}).has_value());
}

}  // namespace berth::control
