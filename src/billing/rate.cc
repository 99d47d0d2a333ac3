#include "billing/rate.h"

#include <algorithm>
#include <limits>
#include <map>
#include <span>
#include <tuple>

#include "base/check.h"
#include "base/checked.h"
#include "billing/line_group.h"
#include "model/quantity_report.h"
#include "model/queue_path.h"

namespace berth::billing {
namespace {

std::int64_t narrowed_amount(Int128 amount) {
  BERTH_CHECK(amount <= std::numeric_limits<std::int64_t>::max() && amount >= std::numeric_limits<std::int64_t>::min());
  return static_cast<std::int64_t>(amount);
}

auto line_key(const InvoiceLine& line) {
  return std::tuple_cat(group_key(line), std::tie(line.borrower, line.user, line.job, line.from));
}

// What holds in one part of the window. `whole` is the first part with the same prices: the lines of a job or floor are
// made for all parts with these prices at once, and only off-peak discounts for single ones.
struct Tariff {
  std::uint32_t whole = 0;
  const PricePeriod* period = nullptr;   // null: before the first prices
  std::int64_t off_peak_percent = 0;     // 0: no window
  Timestamp begin = Timestamp::never();  // of all parts with the same prices
  Timestamp end;
};

std::int64_t off_peak_percent_at(const PriceBook& book, const PricePeriod* period, Timestamp time) {
  const OffPeak* window = period == nullptr ? nullptr : book.off_peak_at(*period, time);
  return window == nullptr ? 0 : window->discount_percent;
}

std::vector<Tariff> tariffs_of(const Window& window, const PriceBook& book, Timestamp counted_until) {
  std::vector<Tariff> tariffs;
  for (std::size_t passed = 0; passed <= window.cuts.size(); ++passed) {
    const Timestamp begin = passed == 0 ? window.from : window.cuts[passed - 1];
    const Timestamp end = std::min(passed < window.cuts.size() ? window.cuts[passed] : window.to, counted_until);
    const std::uint32_t part = window.part_after(passed);
    if (part >= tariffs.size()) tariffs.resize(part + 1U, Tariff{});
    const PricePeriod* period = book.at(begin);
    const auto same =
        std::find_if(tariffs.begin(), tariffs.begin() + part, [&](const Tariff& one) { return one.period == period; });
    Tariff& tariff = tariffs[part];
    tariff.whole = static_cast<std::uint32_t>(same - tariffs.begin());
    tariff.period = period;
    tariff.off_peak_percent = off_peak_percent_at(book, period, begin);
    Tariff& whole = tariffs[tariff.whole];
    whole.begin = std::min(whole.begin, begin);
    whole.end = std::max(whole.end, end);
  }
  return tariffs;
}

// Makes the lines of an invoice, without amounts.
class Rating {
 public:
  Rating(const Ledger& ledger, const InvoiceQuestion& question)
      : ledger_(ledger),
        question_(question),
        tariffs_(tariffs_of(ledger.window(), question.book, ledger.counted_until())) {}

  Result<std::vector<InvoiceLine>> run() {
    const std::optional<JobId>& beside = question_.beside;
    if (!beside || beside->valid()) {
      const std::vector<JobUse> uses = beside ? ledger_.uses_in(ledger_.job(*beside).queue) : ledger_.jobs();
      for (auto use = uses.begin(); use != uses.end();) {
        const auto next = std::find_if(use, uses.end(), [&](const JobUse& one) { return one.job != use->job; });
        rate_job({use, next});
        use = next;
      }
    }
    if (!beside || !beside->valid()) {
      for (const FloorUse& use : whole_floors()) rate(use);
    }
    for (const Correction& one : ledger_.corrections()) add_correction(one);
    for (const Report& one : ledger_.reports()) add_report(one);
    if (missing_ && question_.unpriced == Unpriced::kRefuse) return std::move(*missing_);
    return std::move(lines_);
  }
  // What has no price; after run().
  std::string unpriced() const { return missing_ ? missing_->message : std::string(); }

 private:
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
    line.from = tariffs_[part].begin;
    line.to = tariffs_[part].end;
    return line;
  }

  // The uses of one job.
  void rate_job(std::span<const JobUse> uses) {
    const BilledJob& job = ledger_.job(uses.front().job);
    if (!is_at_or_below(job.queue, question_.queue)) return;
    std::vector<JobUse> whole;
    for (JobUse use : uses) {
      use.part = tariffs_[use.part].whole;
      const auto same = std::find_if(whole.begin(), whole.end(), [&](const JobUse& one) {
        return one.part == use.part && one.model == use.model && one.slice == use.slice &&
               one.guaranteed == use.guaranteed;
      });
      if (same == whole.end())
        whole.push_back(use);
      else
        add_to(*same, use);
    }
    for (const JobUse& use : whole) rate(use, job);
    for (const JobUse& use : uses) {
      if (tariffs_[use.part].off_peak_percent != 0 && use.gpu_milli_ms != 0) add_off_peak(use, job);
    }
  }

  static void add_to(JobUse& sum, const JobUse& use) {
    sum.gpu_milli_ms = checked_add(sum.gpu_milli_ms, use.gpu_milli_ms);
    sum.units_milli_ms = checked_add(sum.units_milli_ms, use.units_milli_ms);
    sum.cpu_milli_ms = checked_add(sum.cpu_milli_ms, use.cpu_milli_ms);
    sum.memory_mib_ms = checked_add(sum.memory_mib_ms, use.memory_mib_ms);
  }

  std::vector<FloorUse> whole_floors() const {
    std::map<std::tuple<std::string, std::uint32_t, std::string, std::string, bool>, std::int64_t> sums;
    for (const FloorUse& use : ledger_.floors()) {
      auto& sum = sums[{use.queue, tariffs_[use.part].whole, use.model, use.borrower, use.own}];
      sum = checked_add(sum, use.gpu_milli_ms);
    }
    std::vector<FloorUse> floors;
    for (const auto& [key, sum] : sums) {
      const auto& [queue, part, model, borrower, own] = key;
      floors.push_back({queue, part, model, borrower, own, sum});
    }
    return floors;
  }

  InvoiceLine line_of(const JobUse& use, const BilledJob& job) const {
    InvoiceLine line = line_of(use.guaranteed ? LineKind::kFloorUsed : LineKind::kBurst, job.queue, use.part);
    line.user = job.user;
    line.job = use.job;
    line.job_name = job.name;
    line.job_class = job.job_class;
    line.labels = job.labels;
    line.guaranteed = use.guaranteed;
    return line;
  }

  void rate(const JobUse& use, const BilledJob& job) {
    const PricePeriod* period = tariffs_[use.part].period;
    InvoiceLine line = line_of(use, job);
    if (use.gpu_milli_ms != 0) rate_gpus(use, job, period, line);
    if (period == nullptr) return;
    line.gpu_milli_ms = 0;
    line.model = line.slice = "";
    if (use.cpu_milli_ms != 0 && period->cpu_micro != 0)
      add_resource(line, LineKind::kCpu, Unit::kCoreHour, use.cpu_milli_ms, period->cpu_micro);
    if (use.memory_mib_ms != 0 && period->memory_micro != 0)
      add_resource(line, LineKind::kMemory, Unit::kGibHour, use.memory_mib_ms, period->memory_micro);
  }

  // Fills in the GPUs and their full price.
  void set_gpus(const JobUse& use, const PricePeriod* period, InvoiceLine& line) {
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
  }

  // `use` is what the job used at off-peak times.
  void add_off_peak(JobUse use, const BilledJob& job) {
    const Tariff& tariff = tariffs_[use.part];
    use.part = tariff.whole;
    InvoiceLine line = line_of(use, job);
    set_gpus(use, tariff.period, line);
    line.kind = LineKind::kDiscount;
    line.cause = kOffPeak;
    line.gpu_milli_ms = 0;  // they are in the line of all hours
    line.percent = tariff.off_peak_percent;
    line.unit_price_micro = line.unit_price_micro / 100 * line.percent;
    lines_.push_back(std::move(line));
  }

  void rate_gpus(const JobUse& use, const BilledJob& job, const PricePeriod* period, InvoiceLine line) {
    set_gpus(use, period, line);
    lines_.push_back(line);
    if (period == nullptr) return;
    const std::int64_t full = line.unit_price_micro;
    line.gpu_milli_ms = 0;  // they are in the line above
    for (const PriceAdjustment& one : period->adjustments) {
      if (!applies(one.cause, job)) continue;
      line.kind = one.percent > 0 ? LineKind::kPremium : LineKind::kDiscount;
      line.cause = name_of(one.cause);
      line.percent = one.percent > 0 ? one.percent : -one.percent;
      line.unit_price_micro = full / 100 * line.percent;
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
    const PricePeriod* period = tariffs_[use.part].period;
    const GpuPrice* price = price_of(use.model, period);
    InvoiceLine line = line_of(use.borrower.empty() ? LineKind::kFloorIdle : LineKind::kFloorLent, use.queue, use.part);
    line.model = use.model;
    line.borrower = use.borrower;
    line.own = use.own;
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

  // By the prices at its begin. What was reported before the first prices costs nothing.
  void add_report(const Report& one) {
    if (!is_at_or_below(one.queue, question_.queue)) return;
    const PricePeriod* period = question_.book.at(one.from);
    const QuantityPrice* price = period == nullptr ? nullptr : period->quantity(one.kind);
    std::optional<Error> wrong;
    if (period != nullptr && price == nullptr)
      wrong = invalid("quantities of " + one.kind + " were reported for " + question_.month.name +
                      ", and the prices from " + to_iso8601(period->valid_from).substr(0, 10) +
                      " have none for it; add it under quantities");
    else if (price != nullptr && price->unit != one.unit)
      wrong = invalid("quantities of " + one.kind + " were reported in " + one.unit + " (report " + one.id +
                      "), and the prices from " + to_iso8601(period->valid_from).substr(0, 10) + " are of one of " +
                      price->unit + "; price a new unit as a kind of its own");
    else if (price != nullptr && Int128{one.quantity} * price->price_micro > kMostReportMicro)
      wrong = invalid("report " + one.id + " of " + std::to_string(one.quantity) + " " + one.unit +
                      " would cost more than " + std::to_string(kMostReportMicro / kMicro) + "; check the price of " +
                      one.kind);
    if (wrong) price = nullptr;
    if (wrong && !missing_) missing_ = std::move(wrong);
    InvoiceLine line;
    line.kind = LineKind::kReported;
    line.unit = Unit::kReported;
    line.queue = one.queue;
    line.cause = one.kind;
    line.reported_unit = one.unit;
    line.from = one.from;
    line.to = one.to;
    line.quantity = one.quantity;
    line.unit_price_micro = price == nullptr ? 0 : price->price_micro;
    line.note = one.id;
    lines_.push_back(std::move(line));
  }

  const Ledger& ledger_;
  const InvoiceQuestion& question_;
  std::vector<Tariff> tariffs_;  // by part
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
  Window window{month.begin, month.end};
  const auto cut = [&](Timestamp at) {
    if (at > month.begin && at < month.end) window.cuts.push_back(at);
  };
  for (std::size_t p = 0; p < book.periods.size(); ++p) {
    const PricePeriod& period = book.periods[p];
    cut(period.valid_from);
    const Timestamp from = std::max(month.begin, period.valid_from);
    const Timestamp to = p + 1 < book.periods.size() ? std::min(month.end, book.periods[p + 1].valid_from) : month.end;
    for (const OffPeak& off_peak : period.off_peak) {
      const TimeZone* zone = book.zone(off_peak.zone);
      BERTH_CHECK(zone != nullptr);
      for (const TimeSpan& span : spans_of(off_peak, *zone, from, to)) {
        cut(span.begin);
        cut(span.end);
      }
    }
  }
  std::sort(window.cuts.begin(), window.cuts.end());
  window.cuts.erase(std::unique(window.cuts.begin(), window.cuts.end()), window.cuts.end());
  std::vector<std::pair<const PricePeriod*, std::int64_t>> parts;  // prices, and what is off in percent
  for (std::size_t passed = 0; passed <= window.cuts.size(); ++passed) {
    const Timestamp begin = passed == 0 ? window.from : window.cuts[passed - 1];
    const PricePeriod* period = book.at(begin);
    const std::pair part{period, off_peak_percent_at(book, period, begin)};
    const auto known = std::find(parts.begin(), parts.end(), part);
    window.parts.push_back(static_cast<std::uint32_t>(known - parts.begin()));
    if (known == parts.end()) parts.push_back(part);
  }
  return window;
}

std::vector<TimeSpan> spans_of_line(const InvoiceLine& line, const Window& window, const PriceBook& book) {
  if (line.cause != kOffPeak) return {{line.from, line.to}};
  std::vector<TimeSpan> spans;
  for (std::size_t passed = 0; passed <= window.cuts.size(); ++passed) {
    const Timestamp begin = passed == 0 ? window.from : window.cuts[passed - 1];
    const Timestamp end = passed < window.cuts.size() ? window.cuts[passed] : window.to;
    if (begin < line.to && end > line.from && off_peak_percent_at(book, book.at(begin), begin) == line.percent)
      spans.push_back({begin, end});
  }
  return spans;
}

Result<Invoice> make_invoice(const Ledger& ledger, const InvoiceQuestion& question) {
  Rating rating(ledger, question);
  auto lines = rating.run();
  if (!lines) return lines.error();
  Invoice invoice;
  invoice.unpriced = rating.unpriced();
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
