// Shorter forms of an invoice: fewer lines, or rows by what lines have in common.

#include <algorithm>
#include <map>

#include "base/checked.h"
#include "billing/line_group.h"
#include "billing/rate.h"

namespace berth::billing {
namespace {

std::string name_in(const InvoiceLine& line, BillBy by, const std::string& label) {
  switch (by) {
    case BillBy::kQueue:
      return line.queue;
    case BillBy::kUser:
      return line.user;
    case BillBy::kJob:
      return line.job.valid() ? std::to_string(line.job.value()) : "";
    case BillBy::kModel:
      return line.model;
    case BillBy::kKind:
      return std::string(name_of(line.kind));
    case BillBy::kLabel: {
      const auto found =
          std::find_if(line.labels.begin(), line.labels.end(), [&](const auto& one) { return one.first == label; });
      return found == line.labels.end() ? "" : found->second;
    }
  }
  return {};
}

}  // namespace

Invoice at_detail(const Invoice& invoice, Detail detail) {
  Invoice shorter = invoice;
  if (detail == Detail::kJob) return shorter;
  shorter.lines.clear();
  for (InvoiceLine line : invoice.lines) {
    if (line.kind != LineKind::kCorrection) {
      line.job = JobId::none();
      line.job_name.clear();
      line.job_class = JobClass::kTraining;
      line.labels.clear();
      if (detail == Detail::kQueue) line.user.clear();
      if (line.kind == LineKind::kReported) line.note.clear();
    }
    InvoiceLine* last = shorter.lines.empty() ? nullptr : &shorter.lines.back();
    const bool joins = last != nullptr && line.kind != LineKind::kCorrection && group_key(*last) == group_key(line) &&
                       last->borrower == line.borrower && last->user == line.user;
    if (!joins) {
      shorter.lines.push_back(std::move(line));
      continue;
    }
    last->from = std::min(last->from, line.from);
    last->to = std::max(last->to, line.to);
    last->quantity = checked_add(last->quantity, line.quantity);
    last->gpu_milli_ms = checked_add(last->gpu_milli_ms, line.gpu_milli_ms);
    last->amount_micro = checked_add(last->amount_micro, line.amount_micro);
  }
  return shorter;
}

std::vector<BillRow> bill_rows(const Invoice& invoice, BillBy by, const std::string& label) {
  std::map<std::string, BillRow> rows;
  for (const InvoiceLine& line : invoice.lines) {
    std::string name = name_in(line, by, label);
    BillRow& row = rows[name];
    row.name = std::move(name);
    if (by == BillBy::kJob) row.job_name = line.job_name;
    std::int64_t* sum = line.kind == LineKind::kFloorUsed   ? &row.floor_used
                        : line.kind == LineKind::kFloorIdle ? &row.floor_idle
                        : line.kind == LineKind::kFloorLent ? &row.floor_lent
                        : line.kind == LineKind::kBurst     ? &row.burst
                                                            : nullptr;
    if (sum != nullptr) *sum = checked_add(*sum, line.gpu_milli_ms);
    row.amount_micro = checked_add(row.amount_micro, line.amount_micro);
  }
  std::vector<BillRow> sorted;
  for (auto& [name, row] : rows) sorted.push_back(std::move(row));
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const BillRow& a, const BillRow& b) { return a.amount_micro > b.amount_micro; });
  return sorted;
}

}  // namespace berth::billing
