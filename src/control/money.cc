#include "control/money.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/planted.h"
#include "base/utf8.h"
#include "model/month.h"
#include "model/quantity_report.h"

namespace berth::control {

using state::State;

namespace {

// What a price book would leave without a price. Mistakes of one entry about the same thing are told once.
class BookInForceCheck {
 public:
  BookInForceCheck(const State& state, const PriceBook& book, Timestamp now, Timestamp first_use)
      : state_(state), book_(book), now_(now), first_use_(first_use) {}

  std::vector<PriceMistake> run() {
    check_currency();
    check_begin();
    for (std::size_t p = 0; p < book_.periods.size(); ++p) {
      const bool over = p + 1 < book_.periods.size() && book_.periods[p + 1].valid_from <= now_;
      if (!over) check_models(p);
    }
    for (const auto& [id, report] : state_.quantity_reports()) check_report(report);
    return std::move(mistakes_);
  }

 private:
  void tell(std::size_t period, std::string path, std::string message) {
    const auto same = [&](const PriceMistake& one) { return one.period == period && one.path == path; };
    if (std::none_of(mistakes_.begin(), mistakes_.end(), same))
      mistakes_.push_back({period, std::move(path), std::move(message)});
  }

  void check_currency() {
    if (state_.price_version() == 0 || state_.prices().currency == book_.currency) return;
    for (const QueueConfig& queue : state_.file_config().queues) {
      for (const std::optional<BudgetConfig>& budget : {queue.budget, queue.grant}) {
        if (!budget || !budget->is_money()) continue;
        const std::string kind(name_of(budget->kind()));
        tell(book_.periods.size(), "currency",
             "the " + kind + " of queue " + queue.path + " is in " + state_.prices().currency + "; take the " + kind +
                 "s in money away before the currency changes, or give them in GPU-hours");
        return;
      }
    }
  }

  // What the book in force prices, and is on no closed bill yet, stays priced: else it would be free in hindsight.
  void check_begin() {
    if (state_.price_version() == 0) return;
    const Timestamp begin = state_.prices().periods.front().valid_from;
    Timestamp from = std::max(begin, first_use_);
    if (from > now_) return;
    while (from < now_ && state_.closed_months().contains(month_at(from).name)) from = month_at(from).end;
    if (from < book_.periods.front().valid_from) tell_unpriced(from);
  }

  void tell_unpriced(Timestamp from) {
    const Month month = month_at(from);
    const Timestamp priced = std::max(state_.prices().periods.front().valid_from, month.begin);
    const auto day = [](Timestamp time) { return to_iso8601(time).substr(0, 10); };
    tell(0, "valid_from",
         "prices begin at " + day(book_.periods.front().valid_from) + ", and " + month.name +
             ", which is not closed, is priced from " + day(priced) + " by the book in force; keep those entries");
  }

  void check_models(std::size_t p) {
    std::string names;
    for (std::size_t m = 0; m < state_.gpu_models().size(); ++m) {
      const std::string& name = state_.gpu_models()[m].name;
      if (state_.capacity()[kDimFirstModel + m] == 0 || book_.periods[p].gpu(name) != nullptr) continue;
      names += (names.empty() ? "" : ", ") + name;
    }
    if (!names.empty())
      tell(p, "gpus", "nodes have GPUs of " + names + ", and these prices have none for it; add it under gpus");
  }

  // What was reported before the first prices costs nothing.
  void check_report(const QuantityReported& report) {
    const PricePeriod* period = book_.at(report.from);
    if (period == nullptr) {
      if (state_.prices().at(report.from) != nullptr) tell_unpriced(report.from);
      return;
    }
    const auto p = static_cast<std::size_t>(period - book_.periods.data());
    const QuantityPrice* price = period->quantity(report.kind);
    const std::string path = "quantities." + report.kind;
    const std::string what = "report " + report.id + " of " + month_at(report.from).name + ", which is not closed, ";
    if (price == nullptr)
      tell(p, path,
           what + "is of " + report.kind + " in " + report.unit + ", and these prices have none for it; add it");
    else if (price->unit != report.unit)
      tell(p, path + ".unit",
           what + "is in " + report.unit + ", not in " + price->unit +
               "; keep the unit, and price a new one as a kind of its own");
    else if (Int128{report.quantity} * price->price_micro > kMostReportMicro)
      tell(p, path + ".price",
           what + "of " + std::to_string(report.quantity) + " " + report.unit + " would cost more than " +
               std::to_string(kMostReportMicro / kMicro) + "; check the price");
  }

  const State& state_;
  const PriceBook& book_;
  Timestamp now_;
  Timestamp first_use_;
  std::vector<PriceMistake> mistakes_;
};

}  // namespace

std::vector<PriceMistake> price_mistakes(const State& state, const PriceBook& book, Timestamp now,
                                         std::optional<Timestamp> first_use) {
  return BookInForceCheck(state, book, now, first_use.value_or(month_at(now).begin)).run();
}

Result<Reply> apply_prices(Batch& batch, const ApplyPrices& command) {
  const State& state = batch.state();
  if (command.if_version.value_or(state.price_version()) != state.price_version())
    return Reply{.job = {}, .stale = true, .version = state.price_version()};
  if (auto ok = validate(command.book); !ok) return ok.error();
  if (const auto mistakes = price_mistakes(state, command.book, batch.now()); !mistakes.empty()) {
    const PriceMistake& first = mistakes.front();
    const bool of_entry = first.period < command.book.periods.size();
    return invalid((of_entry ? "prices[" + std::to_string(first.period) + "]." : "") + first.path + ": " +
                   first.message);
  }
  if (state.price_version() > 0 && state.prices() == command.book)
    return Reply{.job = {}, .unchanged = true, .version = state.price_version()};
  const std::uint64_t version = state.price_version() + 1;
  batch.emit(PricesApplied{command.book, version, command.user});
  return Reply{.job = {}, .version = version};
}

Result<Reply> close_month(Batch& batch, const CloseMonth& command) {
  const MonthClosed& closing = command.month;
  const auto month = month_of(closing.month);
  if (!month) return invalid("'" + closing.month.substr(0, 80) + "' is no month; give one such as 2026-11");
  if (const auto closed = batch.state().closed_months().find(closing.month);
      closed != batch.state().closed_months().end())
    return conflict("month " + closing.month + " was closed at " + to_iso8601(closed->second.closed) +
                    "; correct it by entries of their own (berth bill --correct)");
  if (month->end > batch.now()) return conflict("month " + closing.month + " ends at " + to_iso8601(month->end));
  const auto& reports = batch.state().quantity_reports();
  const auto counted = std::count_if(reports.begin(), reports.end(), [&](const auto& one) {
    return one.second.from >= month->begin && one.second.from < month->end;
  });
  if (counted != closing.reports)
    return conflict("a quantity was reported for " + closing.month + " while it was being billed; close it again");
  batch.emit(closing);
  return Reply{};
}

Result<Reply> correct_bill(Batch& batch, const CorrectBill& command) {
  const BillCorrected& correction = command.correction;
  constexpr std::size_t kLongestReason = 200;
  const auto month = month_of(correction.month);
  if (!month) return invalid("'" + correction.month.substr(0, 80) + "' is no month; give one such as 2026-11");
  if (month->begin > batch.now()) return invalid("month " + correction.month + " is still to come");
  if (batch.state().price_version() == 0)
    return conflict(
        "no prices are in force yet, and so no currency; apply a price book first (berth prices apply FILE)");
  if (batch.state().queue_at(correction.queue) == nullptr)
    return not_found("no such queue '" + correction.queue.substr(0, 200) + "'");
  if (correction.amount_micro == 0 || std::abs(correction.amount_micro) > kMostPriceMicro * 1000)
    return invalid("a correction is an amount other than 0, and at most 100000000");
  if (correction.reason.size() > kLongestReason || !is_plain_line(correction.reason))
    return invalid("a correction needs a reason: 1 to 200 bytes on one line, with something visible in it");
  if (correction.key.size() > 256) return invalid("the idempotency key is longer than 256 bytes");
  if (const BillCorrected* known = batch.state().correction_of(correction.user, correction.key)) {
    if (*known == correction) return Reply{.job = {}, .repeated = true};
    return conflict("the idempotency key was used for another correction (" + money_text(known->amount_micro) +
                    " for " + known->month + " on queue " + known->queue + "); use a new key for a new one");
  }
  batch.emit(correction);
  return Reply{};
}

namespace {

bool is_report_id(std::string_view id) {
  return !id.empty() && id.size() <= 100 &&
         std::all_of(id.begin(), id.end(), [](char c) { return c > ' ' && c <= '~'; });
}

std::string known_kinds(const PricePeriod& period) {
  std::string names;
  for (const QuantityPrice& one : period.quantities)
    names += (names.empty() ? "" : ", ") + one.kind + " (" + one.unit + ")";
  return names.empty() ? "none; add it under quantities of the price book" : names;
}

std::string quantity_words(const QuantityReported& report) {
  return std::to_string(report.quantity) + " " + report.unit + " of " + report.kind + " for queue " + report.queue +
         " from " + to_iso8601(report.from) + " to " + to_iso8601(report.to);
}

Result<void> check_report_times(const QuantityReported& report, Timestamp now) {
  if (report.from.ms < 0 || report.from >= report.to)
    return invalid("to: lies not after from; give the end of the time");
  if (report.to > now)
    return invalid("to: " + to_iso8601(report.to) + " is still to come; report what was used, until now at most");
  const Month month = month_at(report.from);
  if (report.to > month.end)
    return invalid("to: lies in another month than from; split the report at " + to_iso8601(month.end));
  return {};
}

// Returns the price of one unit, and gives the report the unit of the prices.
Result<std::int64_t> price_of_report(const State& state, QuantityReported& report) {
  const PricePeriod* period = state.prices().at(report.from);
  if (period == nullptr)
    return invalid("from: no prices were in force at " + to_iso8601(report.from) + "; the first ones are of " +
                   to_iso8601(state.prices().periods.front().valid_from));
  const QuantityPrice* price = period->quantity(report.kind);
  if (price == nullptr)
    return invalid("kind: '" + report.kind.substr(0, 80) + "' had no price then; known are " + known_kinds(*period));
  if (!report.unit.empty() && report.unit != price->unit)
    return invalid("unit: " + report.kind + " is priced by " + price->unit + ", not by '" + report.unit.substr(0, 80) +
                   "'; convert it");
  report.unit = price->unit;
  return price->price_micro;
}

Result<void> check_report(const State& state, QuantityReported& report, Timestamp now) {
  if (!is_report_id(report.id))
    return invalid("id: give each report an id of its own: 1 to 100 visible ASCII characters");
  if (report.queue.empty()) return invalid("queue: name the queue that pays");
  if (state.queue_at(report.queue) == nullptr)
    return not_found("queue: no such queue '" + report.queue.substr(0, 200) + "'");
  if (report.quantity < 1 || report.quantity > kMostQuantity)
    return invalid("quantity: has to be a whole number between 1 and " + std::to_string(kMostQuantity));
  if (auto ok = check_report_times(report, now); !ok) return ok.error();
  const auto price = price_of_report(state, report);
  if (!price) return price.error();
  if (*price > 0 && report.quantity > kMostReportMicro / *price)
    return invalid("quantity: would cost more than " + std::to_string(kMostReportMicro / kMicro) +
                   "; check the unit (" + report.unit + ")");
  const Month month = month_at(report.from);
  if (state.closed_months().contains(month.name))
    return conflict("month " + month.name + " is closed; correct it: berth bill " + report.queue + " --month " +
                    month.name + " --correct " + money_text(report.quantity * *price) + " --reason '" + report.id +
                    "'");
  return {};
}

}  // namespace

Result<Reply> report_quantities(Batch& batch, const ReportQuantities& command) {
  const State& state = batch.state();
  if (state.price_version() == 0)
    return conflict("no prices are in force yet; apply a price book with quantities first (berth prices apply FILE)");
  std::vector<QuantityReported> fresh;
  std::map<std::string_view, std::size_t> ids;  // of fresh
  for (std::size_t i = 0; i < command.reports.size(); ++i) {
    QuantityReported report = command.reports[i];
    const auto refused = [&](const Error& error) {
      return Error{error.code, "quantities[" + std::to_string(i) + "]." + error.message};
    };
    if (auto ok = check_report(state, report, batch.now()); !ok) return refused(ok.error());
    const auto stored = state.quantity_reports().find(report.id);
    const auto listed = ids.find(command.reports[i].id);
    const QuantityReported* known = stored != state.quantity_reports().end() ? &stored->second
                                    : listed != ids.end()                    ? &fresh[listed->second]
                                                                             : nullptr;
    if (known == nullptr) {
      ids.emplace(command.reports[i].id, fresh.size());
      fresh.push_back(std::move(report));
      continue;
    }
    report.user = known->user;
    if (report != *known)
      return refused(conflict("id: " + report.id + " was reported as " + quantity_words(*known) +
                              "; a report is not changed: correct it (berth bill --correct), or use another id"));
  }
  if (state.quantity_reports().size() + fresh.size() > kMostReports)
    return conflict("more than " + std::to_string(kMostReports) +
                    " reports are in months that are not closed; close months that are over (berth bill --close)");
  for (QuantityReported& report : fresh) batch.emit(std::move(report));
  return Reply{.job = {}, .unchanged = fresh.empty(), .reported = fresh.size()};
}

Result<Reply> mark_budget(Batch& batch, const MarkBudget& command) {
  const BudgetMarked& mark = command.mark;
  const state::QueueState* queue = batch.state().queue_at(mark.queue);
  const Reply unchanged{.job = {}, .unchanged = true};
  if (queue == nullptr || !queue->budget(mark.of)) return unchanged;  // changed in between
  const auto& [config, last] = *queue->budget(mark.of);
  const bool grant = mark.of == BudgetKind::kGrant;
  if (config.limit() != mark.limit || (grant && config.until != mark.until)) return unchanged;  // likewise
  if (mark.ended && (!grant || batch.now() < config.until)) return unchanged;
  const bool same_period = grant || last.month == mark.month;
  if (!planted(Bug::kMarkToldTwice) && last.percent == mark.percent && last.ended == mark.ended && same_period)
    return unchanged;
  batch.emit(mark);
  return Reply{};
}

}  // namespace berth::control
