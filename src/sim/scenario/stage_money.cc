// Prices, and what they make of the month so far.

#include <algorithm>

#include "billing/rate.h"
#include "billing/render.h"
#include "model/document/price_document.h"
#include "sim/scenario/stage.h"
#include "store/event_codec.h"

namespace berth::sim {
namespace {

// What a line is for: "floor-lent to b", "premium exclusive", "burst of job train, ann".
std::string purpose_of(const billing::InvoiceLine& line, const std::string& job) {
  std::string text(name_of(line.kind));
  if (!line.cause.empty()) text += " " + line.cause;
  if (!line.borrower.empty())
    text += (line.kind == billing::LineKind::kLendingCredit ? " from " : " to ") + line.borrower;
  if (line.job.valid()) text += " of " + job + ", " + line.user;
  return text;
}

std::string invoice_line(const billing::InvoiceLine& line, const std::string& job) {
  std::string text = line.queue + ": " + purpose_of(line, job) + ": ";
  if (line.kind == billing::LineKind::kCorrection) return text + money_text(line.amount_micro) + ", " + line.note;
  text += billing::hours_text(line.quantity, line.unit) + " " + std::string(name_of(line.unit));
  if (!line.model.empty()) text += " of " + line.model;
  if (!line.slice.empty()) text += " " + line.slice;
  return text + " at " + money_text(line.unit_price_micro) + " = " + money_text(line.amount_micro);
}

}  // namespace

Stage::Done Stage::apply_prices(const std::vector<std::string>& below) {
  std::size_t indent = std::string::npos;
  for (const std::string& line : below) indent = std::min(indent, line.find_first_not_of(' '));
  std::string text;
  for (const std::string& line : below) text += line.substr(std::min(indent, line.size())) + "\n";
  auto book = document::read_prices(text, "prices", nullptr);  // a scenario has no time zones
  if (!book) return book.error();
  pricing_ = true;
  ask(ApplyPrices{std::move(*book), "operator"});
  pricing_ = false;
  return {};
}

// Looks what is used of budgets and grants, as the server does all the time.
Stage::Done Stage::mark_budgets() {
  auto marks = budgets_.look(world_.durable(), world_.log(), world_.now());
  if (!marks) return marks.error();
  for (BudgetMarked& mark : *marks) ask(MarkBudget{std::move(mark)});
  return {};
}

Stage::Done Stage::tell_invoice(const Line& line) {
  const std::string queue = line.names.empty() ? std::string() : line.names.front();
  if (world_.durable().queue_at(queue) == nullptr) return invalid("no queue " + shown(queue));
  if (world_.durable().price_version() == 0) return invalid("there are no prices; 'prices' states them");
  const Month month = month_at(world_.now());
  const PriceBook& book = world_.durable().prices();
  billing::Ledger ledger(billing::window_of(month, book));
  const auto read = world_.log().read(1, [&](const store::Record& record) -> Result<bool> {
    auto event = store::to_event(record);
    if (!event) return event.error();
    ledger.apply(*event);
    return true;
  });
  if (!read) return read.error();
  ledger.look_ahead(world_.now());
  const auto invoice = billing::make_invoice(ledger, {queue, month, book, world_.durable().price_version()});
  if (!invoice) return invoice.error();
  for (const billing::InvoiceLine& one : invoice->lines)
    say(invoice_line(one, one.job.valid() ? name_of_job(one.job) : std::string()));
  say("total " + money_text(invoice->total_micro) + " " + invoice->currency);
  for (const billing::FleetAccounts& one : invoice->fleet) {
    const auto hours = [](std::int64_t amount) { return billing::hours_text(amount, billing::Unit::kGpuHour); };
    say(one.model + " in GPU-hours: floor used " + hours(one.floor_used) + ", idle " + hours(one.floor_idle) +
        ", lent " + hours(one.floor_lent) + "; burst " + hours(one.burst) + ", unowned " + hours(one.unowned) +
        ", drained " + hours(one.drained) + ", failed " + hours(one.failed) +
        (one.foreign == 0 ? "" : ", foreign " + hours(one.foreign)) + "; together " + hours(one.capacity));
  }
  return {};
}

}  // namespace berth::sim
