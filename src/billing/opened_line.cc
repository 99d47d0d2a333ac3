#include "billing/opened_line.h"

#include <algorithm>
#include <charconv>

#include "base/hash.h"
#include "billing/line_group.h"

namespace berth::billing {
namespace {

bool is_of_job(LineKind kind) {
  return kind != LineKind::kFloorIdle && kind != LineKind::kFloorLent && kind != LineKind::kLendingCredit;
}

std::int64_t amount_per_ms(const JobUse& rate, Unit unit) {
  switch (unit) {
    case Unit::kGpuHour:
      return rate.gpu_milli_ms;
    case Unit::kMigHour:
      return rate.units_milli_ms;
    case Unit::kCoreHour:
      return rate.cpu_milli_ms;
    case Unit::kGibHour:
      return rate.memory_mib_ms;
    case Unit::kNone:
    case Unit::kReported:
      return 0;
  }
  return 0;
}

}  // namespace

std::string line_id(const InvoiceLine& line) {
  Hasher hash;
  for (const std::string& text : {line.queue, line.cause, line.model, line.slice, line.borrower, line.user, line.note})
    hash.add(text);
  hash.add(static_cast<std::uint64_t>(line.kind)).add(static_cast<std::uint64_t>(line.unit));
  hash.add(static_cast<std::uint64_t>(line.unit_price_micro)).add(static_cast<std::uint64_t>(line.from.ms));
  std::string id = std::to_string(line.job.valid() ? line.job.value() : 0) + "-";
  for (unsigned shift = 48; shift > 0; shift -= 4) id += "0123456789abcdef"[(hash.digest() >> shift) & 0xfU];
  return id;
}

Result<JobId> job_of_line(std::string_view id) {
  std::uint64_t job = 0;
  const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), job);
  if (error != std::errc() || end == id.data() + id.size() || *end != '-')
    return invalid("'" + std::string(id.substr(0, 80)) +
                   "' is no line; lines are called as 17-3f9ac2d15b07 in berth invoice");
  return job == 0 ? JobId::none() : JobId(job);
}

Result<FoundLine> find_line(const Invoice& invoice, std::string_view id) {
  Int128 exact = 0;
  for (std::size_t i = 0; i < invoice.lines.size(); ++i) {
    const InvoiceLine& line = invoice.lines[i];
    if (i == 0 || group_key(invoice.lines[i - 1]) != group_key(line)) exact = 0;
    if (line_id(line) == id) return FoundLine{line, exact, {{line.from, line.to}}};
    exact += Int128{line.quantity} * line.unit_price_micro;
  }
  return not_found("the bill of " + invoice.month + " has no line " + std::string(id.substr(0, 80)));
}

Followed followed_by(const InvoiceLine& line, const Ledger& ledger) {
  Followed what;
  if (is_of_job(line.kind)) {
    what.job = line.job;
    what.model = line.model;
    what.slice = line.slice;
    what.guaranteed = line.guaranteed;
    return what;
  }
  what.model = line.model;
  what.lender = ledger.queue(line.queue).value();
  what.borrower = ledger.queue(line.borrower.empty() ? line.queue : line.borrower).value();
  what.idle = line.borrower.empty();
  what.own = line.own;
  return what;
}

namespace {

// Returns true if the second stretch goes on with the first: an off-peak window began or ended between them, and no
// event did.
bool goes_on(const Stretch& first, const Stretch& second) {
  return first.to == second.from && first.ended == 0 && second.began == 0 &&
         first.rate.gpu_milli_ms == second.rate.gpu_milli_ms &&
         first.rate.units_milli_ms == second.rate.units_milli_ms &&
         first.rate.cpu_milli_ms == second.rate.cpu_milli_ms && first.rate.memory_mib_ms == second.rate.memory_mib_ms;
}

}  // namespace

std::vector<BilledStretch> bill_stretches(const FoundLine& found, std::int64_t quantity_before,
                                          const std::vector<Stretch>& stretches) {
  const InvoiceLine& line = found.line;
  const Int128 hour = per_hour(line.unit);
  Int128 exact = found.exact_before + Int128{quantity_before} * line.unit_price_micro;
  std::vector<BilledStretch> billed;
  for (const Stretch& one : stretches) {
    const std::int64_t per_ms = amount_per_ms(one.rate, line.unit);
    const bool counts = std::any_of(found.spans.begin(), found.spans.end(),
                                    [&](const TimeSpan& span) { return one.from >= span.begin && one.to <= span.end; });
    if (!counts || per_ms == 0) continue;
    BilledStretch next{one, checked_multiply(per_ms, one.to - one.from), 0};
    const Int128 before = (2 * exact + hour) / (2 * hour);
    exact += Int128{next.quantity} * line.unit_price_micro;
    next.amount_micro = static_cast<std::int64_t>((2 * exact + hour) / (2 * hour) - before);
    if (is_negative(line.kind)) next.amount_micro = -next.amount_micro;
    if (billed.empty() || !goes_on(billed.back().stretch, one)) {
      billed.push_back(next);
      continue;
    }
    BilledStretch& last = billed.back();
    last.stretch.to = one.to;
    last.stretch.ended = one.ended;
    last.quantity = checked_add(last.quantity, next.quantity);
    last.amount_micro = checked_add(last.amount_micro, next.amount_micro);
  }
  return billed;
}

}  // namespace berth::billing
