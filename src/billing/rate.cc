#include "billing/rate.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/checked.h"
#include "billing/line_group.h"

namespace berth::billing {
namespace {

bool is_at_or_below(const std::string& queue, const std::string& top) {
  return top.empty() || queue == top || (queue.starts_with(top) && queue[top.size()] == '/');
}

std::int64_t narrowed_amount(Int128 amount) {
  BERTH_CHECK(amount <= std::numeric_limits<std::int64_t>::max() && amount >= std::numeric_limits<std::int64_t>::min());
  return static_cast<std::int64_t>(amount);
}

auto line_key(const InvoiceLine& line) {
  return std::tuple_cat(group_key(line), std::tie(line.borrower, line.user, line.job, line.from));
}

// Makes the lines of an invoice, without amounts.
class Rating {
 public:
  Rating(const Ledger& ledger, const InvoiceQuestion& question) : ledger_(ledger), question_(question) {}

  Result<std::vector<InvoiceLine>> run() {
    const std::optional<JobId>& beside = question_.beside;
    if (!beside || beside->valid()) {
      for (const JobUse& use : beside ? ledger_.uses_in(ledger_.job(*beside).queue) : ledger_.jobs()) rate(use);
    }
    if (!beside || !beside->valid()) {
      for (const FloorUse& use : ledger_.floors()) rate(use);
    }
    for (const Correction& one : ledger_.corrections()) add_correction(one);
    if (missing_) return std::move(*missing_);
    return std::move(lines_);
  }

 private:
  Timestamp begin_of(std::uint32_t part) const {
    return part == 0 ? ledger_.window().from : ledger_.window().cuts[part - 1];
  }
  Timestamp end_of(std::uint32_t part) const {
    const Window& window = ledger_.window();
    return std::min(part < window.cuts.size() ? window.cuts[part] : window.to, ledger_.counted_until());
  }

  // Returns the prices of the model, or null where nothing has a price yet.
  const GpuPrice* price_of(const std::string& model, const PricePeriod* period) {
    if (period == nullptr) return nullptr;
    const GpuPrice* price = period->gpu(model);
    if (price == nullptr && !missing_) {
      missing_ =
          invalid("GPUs of model " + model + " were there in " + question_.month.name + ", and the prices from " +
                  to_iso8601(period->valid_from).substr(0, 10) + " have none for it; add it under gpus");
    }
    return price;
  }

  InvoiceLine line_of(LineKind kind, const std::string& queue, std::uint32_t part) const {
    InvoiceLine line;
    line.kind = kind;
    line.queue = queue;
    line.from = begin_of(part);
    line.to = end_of(part);
    return line;
  }

  void rate(const JobUse& use) {
    const BilledJob& job = ledger_.job(use.job);
    if (!is_at_or_below(job.queue, question_.queue)) return;
    const PricePeriod* period = question_.book.at(begin_of(use.part));
    InvoiceLine line = line_of(use.guaranteed ? LineKind::kFloorUsed : LineKind::kBurst, job.queue, use.part);
    line.user = job.user;
    line.job = use.job;
    line.job_name = job.name;
    line.job_class = job.job_class;
    line.labels = job.labels;
    if (use.gpu_milli_ms != 0) rate_gpus(use, job, period, line);
    if (period == nullptr) return;
    line.gpu_milli_ms = 0;
    line.model = line.slice = "";
    if (use.cpu_milli_ms != 0 && period->cpu_micro != 0)
      add_resource(line, LineKind::kCpu, Unit::kCoreHour, use.cpu_milli_ms, period->cpu_micro);
    if (use.memory_mib_ms != 0 && period->memory_micro != 0)
      add_resource(line, LineKind::kMemory, Unit::kGibHour, use.memory_mib_ms, period->memory_micro);
  }

  void rate_gpus(const JobUse& use, const BilledJob& job, const PricePeriod* period, InvoiceLine line) {
    line.model = ledger_.name(use.model);
    line.slice = ledger_.name(use.slice);
    line.quantity = line.gpu_milli_ms = use.gpu_milli_ms;
    if (const GpuPrice* price = price_of(line.model, period)) {
      line.unit_price_micro = use.guaranteed ? price->floor_micro : price->burst_micro;
      const auto slice = std::find_if(price->mig_micro.begin(), price->mig_micro.end(),
                                      [&](const auto& one) { return one.first == line.slice; });
      if (!use.guaranteed && slice != price->mig_micro.end()) {
        line.unit = Unit::kMigHour;
        line.quantity = use.units_milli_ms;
        line.unit_price_micro = slice->second;
      }
    }
    lines_.push_back(line);
    if (period == nullptr) return;
    const std::int64_t full = line.unit_price_micro;
    line.gpu_milli_ms = 0;  // they are in the line above
    for (const PriceAdjustment& one : period->adjustments) {
      if (!applies(one.cause, job)) continue;
      line.kind = one.percent > 0 ? LineKind::kPremium : LineKind::kDiscount;
      line.cause = name_of(one.cause);
      line.unit_price_micro = full / 100 * (one.percent > 0 ? one.percent : -one.percent);
      lines_.push_back(line);
    }
  }

  void add_resource(InvoiceLine line, LineKind kind, Unit unit, std::int64_t quantity, std::int64_t price) {
    line.kind = kind;
    line.unit = unit;
    line.quantity = quantity;
    line.unit_price_micro = price;
    lines_.push_back(std::move(line));
  }

  // The floor is paid for by the queue that holds it. What others use of it is credited: a part of the burst price, and
  // all of it where its own jobs do, since they are billed for it already.
  void rate(const FloorUse& use) {
    if (!is_at_or_below(use.queue, question_.queue)) return;
    const PricePeriod* period = question_.book.at(begin_of(use.part));
    const GpuPrice* price = price_of(use.model, period);
    InvoiceLine line = line_of(use.borrower.empty() ? LineKind::kFloorIdle : LineKind::kFloorLent, use.queue, use.part);
    line.model = use.model;
    line.borrower = use.borrower;
    line.quantity = line.gpu_milli_ms = use.gpu_milli_ms;
    line.unit_price_micro = price == nullptr ? 0 : price->floor_micro;
    lines_.push_back(line);
    if (price == nullptr || use.borrower.empty()) return;
    line.kind = LineKind::kLendingCredit;
    line.gpu_milli_ms = 0;
    line.unit_price_micro = use.own ? price->burst_micro : price->burst_micro / 100 * period->lending_credit_percent;
    if (line.unit_price_micro != 0) lines_.push_back(line);
  }

  void add_correction(const Correction& one) {
    if (!is_at_or_below(one.queue, question_.queue)) return;
    InvoiceLine line;
    line.kind = LineKind::kCorrection;
    line.unit = Unit::kNone;
    line.queue = one.queue;
    line.job = one.job;
    line.from = line.to = one.time;
    line.amount_micro = one.amount_micro;
    line.note = "event " + std::to_string(one.seq) + " corrects " + one.month + ": " + one.reason;
    lines_.push_back(std::move(line));
  }

  const Ledger& ledger_;
  const InvoiceQuestion& question_;
  std::vector<InvoiceLine> lines_;
  std::optional<Error> missing_;
};

// Sets the amounts of lines that are in order, by the rule of billing/invoice.h.
void round_lines(std::vector<InvoiceLine>& lines) {
  Int128 exact = 0;  // of the group so far, times per_hour
  Int128 billed = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    InvoiceLine& line = lines[i];
    if (i == 0 || group_key(lines[i - 1]) != group_key(line)) exact = billed = 0;
    if (line.kind == LineKind::kCorrection) continue;
    const Int128 hour = per_hour(line.unit);
    exact += Int128{line.quantity} * line.unit_price_micro;
    const Int128 until = (2 * exact + hour) / (2 * hour);
    line.amount_micro = narrowed_amount(until - billed);
    billed = until;
    if (is_negative(line.kind)) line.amount_micro = -line.amount_micro;
  }
}

}  // namespace

Window window_of(const Month& month, const PriceBook& book) {
  Window window{month.begin, month.end, {}};
  for (const PricePeriod& period : book.periods) {
    if (period.valid_from > month.begin && period.valid_from < month.end) window.cuts.push_back(period.valid_from);
  }
  return window;
}

Result<Invoice> make_invoice(const Ledger& ledger, const InvoiceQuestion& question) {
  auto lines = Rating(ledger, question).run();
  if (!lines) return lines.error();
  Invoice invoice;
  invoice.month = question.month.name;
  invoice.from = question.month.begin;
  invoice.to = ledger.counted_until();
  invoice.cluster = ledger.cluster();
  invoice.queue = question.queue;
  invoice.currency = question.book.currency;
  invoice.price_version = question.price_version;
  invoice.first_seq = ledger.first_seq();
  invoice.last_seq = ledger.last_seq();
  invoice.began = ledger.began();
  invoice.simulated = ledger.simulated();
  invoice.lines = std::move(*lines);
  std::stable_sort(invoice.lines.begin(), invoice.lines.end(),
                   [](const InvoiceLine& a, const InvoiceLine& b) { return line_key(a) < line_key(b); });
  round_lines(invoice.lines);
  if (question.queue.empty()) invoice.fleet = ledger.fleet();
  for (const InvoiceLine& line : invoice.lines)
    invoice.total_micro = checked_add(invoice.total_micro, line.amount_micro);
  return invoice;
}

}  // namespace berth::billing
