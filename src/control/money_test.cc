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

TEST_CASE("the mark of a budget is told once, lasts over a checkpoint, and ends with the budget") {
  BilledFleet fleet;
  fleet.command(MarkBudget{fleet.mark(100)});
  CHECK(fleet.command(MarkBudget{fleet.mark(100)}).unchanged);
  CHECK(fleet.state.queue_at("a")->budget_stops(BudgetAction::kStopStarting));
  CHECK_FALSE(fleet.state.queue_at("a")->budget_stops(BudgetAction::kStopBorrowing));
  CHECK(fleet.survives_a_checkpoint());
  fleet.command(MarkBudget{fleet.mark(0)});
  CHECK_FALSE(fleet.state.queue_at("a")->budget_stops(BudgetAction::kStopStarting));
  fleet.command(MarkBudget{fleet.mark(100)});
  fleet.configure({HandDrivenFleet::queue("a"), HandDrivenFleet::queue("b")});
  CHECK_FALSE(fleet.state.queue_at("a")->budget_stops(BudgetAction::kStopStarting));
  CHECK(fleet.command(MarkBudget{fleet.mark(100)}).unchanged);  // it was changed in between
}

TEST_CASE("a correction names its month, its queue and why") {
  BilledFleet fleet;
  fleet.command(CorrectBill{{"a", "2026-10", JobId::none(), -5, "node lost", "op"}});
  for (const BillCorrected& wrong : {BillCorrected{"a", "2026", JobId::none(), -5, "x", "op"},
                                     BillCorrected{"c", "2026-10", JobId::none(), -5, "x", "op"},
                                     BillCorrected{"a", "2026-10", JobId::none(), 0, "x", "op"},
                                     BillCorrected{"a", "2026-10", JobId::none(), -5, "", "op"},
                                     BillCorrected{"a", "2026-10", JobId::none(), -5, "two\nlines", "op"}})
    CHECK_FALSE(fleet.try_command(CorrectBill{wrong}).has_value());
}

}  // namespace berth::control
