#pragma once
// A line of an invoice opened: the stretches of time that it is made of, the event that began and ended each, and what
// each of them costs. The amounts add up to that of the line.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/checked.h"
#include "base/result.h"
#include "billing/invoice.h"
#include "billing/ledger.h"
#include "billing/rate.h"
#include "model/event.h"

namespace berth::billing {

// Returns what a line is called: the number of its job (0: none), and a hash of what tells it from other lines. It
// stays the same while the month goes on.
std::string line_id(const InvoiceLine& line);
// Returns the job of a line that is called so; JobId::none(): of no job. Error: nothing is called so.
Result<JobId> job_of_line(std::string_view id);

// A line, and what the lines before it in its group come to, times per_hour(): its amount is rounded on top of that.
struct FoundLine {
  InvoiceLine line;
  Int128 exact_before = 0;
  std::vector<TimeSpan> spans;  // in which it was used: spans_of_line(); of find_line() all of its time
};
Result<FoundLine> find_line(const Invoice& invoice, std::string_view id);

// Returns what to follow through the log so that the stretches make the line. Requires: the line is of an invoice that
// was made from this ledger, and is no correction and nothing reported.
Followed followed_by(const InvoiceLine& line, const Ledger& ledger);

struct BilledStretch {
  Stretch stretch;
  std::int64_t quantity = 0;  // as of an InvoiceLine
  std::int64_t amount_micro = 0;
};
// `quantity_before` is that of the stretches before. Stretches that are not within the spans of the line are left out.
std::vector<BilledStretch> bill_stretches(const FoundLine& found, std::int64_t quantity_before,
                                          const std::vector<Stretch>& stretches);

struct OpenedLine {
  std::string month;
  std::string currency;
  std::uint64_t price_version = 0;
  InvoiceLine line;
  std::vector<BilledStretch> stretches;
  std::vector<EventRecord> events;  // those of the job, or those that began and ended the stretches; in their order
  std::string next;                 // how to ask for the stretches that follow; empty: these are the last
};

}  // namespace berth::billing
