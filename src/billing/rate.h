#pragma once
// Rating: what was used times what it costs. The lines, their order and their rounding are those of billing/invoice.h.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "billing/invoice.h"
#include "billing/ledger.h"
#include "model/job.h"
#include "model/month.h"
#include "model/price_book.h"

namespace berth::billing {

// The cause of a discount for what was used in an off-peak window.
inline constexpr const char* kOffPeak = "off_peak";

// Returns the part of the log that the month needs: split where the prices of the book change, and where off-peak
// windows begin and end. Times with the same prices and window are one part.
Window window_of(const Month& month, const PriceBook& book);

// What has no price although prices are in force. kCountAsNothing: it costs nothing, and Invoice::unpriced names the
// first of it.
enum class Unpriced { kRefuse, kCountAsNothing };

struct InvoiceQuestion {
  std::string queue;  // with all below it; empty: the root
  Month month;
  PriceBook book;
  std::uint64_t price_version = 0;
  // If given, only lines that can be rounded together with those of this job: those of its queue; or, for
  // JobId::none(), those of no job. Their amounts are those of the whole invoice.
  std::optional<JobId> beside = {};
  Unpriced unpriced = Unpriced::kRefuse;
};

// Returns the times in which what the line counts was used: all of its time, or of an off-peak discount the windows.
std::vector<TimeSpan> spans_of_line(const InvoiceLine& line, const Window& window, const PriceBook& book);

// Returns the invoice, job by job. What was used before the first prices of the book costs nothing. Requires: the
// ledger has counted window_of() the month and the book. The error names a GPU model that was used, or a kind that
// was reported, and has no price that fits.
Result<Invoice> make_invoice(const Ledger& ledger, const InvoiceQuestion& question);

// Returns the same invoice with one line for each user, or for each queue, in the place of those of its jobs.
enum class Detail { kJob, kUser, kQueue };
Invoice at_detail(const Invoice& invoice, Detail detail);

// A bill summed up by what its lines have in common. Quantities are thousandths of GPUs times milliseconds.
enum class BillBy { kQueue, kUser, kJob, kModel, kLabel, kKind };
struct BillRow {
  std::string name;      // of the queue, user, ...; empty: lines that have none
  std::string job_name;  // by job
  std::int64_t floor_used = 0;
  std::int64_t floor_idle = 0;
  std::int64_t floor_lent = 0;
  std::int64_t burst = 0;
  std::int64_t amount_micro = 0;
};
// Returns the rows, the largest amount first. `label` is the key for kLabel.
std::vector<BillRow> bill_rows(const Invoice& invoice, BillBy by, const std::string& label);

// What an hour of the job costs, and what it costs until its time limit, on GPUs of one model. The job is taken at its
// full size. Off-peak discounts are in the cost until the time limit only, as if it started now.
struct CostEstimate {
  std::string currency;
  std::string model;                      // empty: it asks for no GPUs
  std::int64_t floor_per_hour_micro = 0;  // if it runs within the guarantee of its queue, which is paid for anyway
  std::int64_t burst_per_hour_micro = 0;  // if it borrows
  std::int64_t time_limit_s = 0;          // 0: none, and so the next two are not known
  std::int64_t floor_micro = 0;
  std::int64_t burst_micro = 0;
};
// Returns one estimate for each GPU model that the job may use and that has a price, by model. `models` are those of
// the cluster. Empty: there are no prices now.
std::vector<CostEstimate> estimate_cost(const JobSpec& spec, const std::vector<std::string>& models,
                                        const PriceBook& book, Timestamp now);

}  // namespace berth::billing

namespace berth {
BERTH_ENUM_NAMES(billing::BillBy, "queue", "user", "job", "model", "label", "kind");
BERTH_ENUM_NAMES(billing::Detail, "job", "user", "queue");
}  // namespace berth
