#pragma once
// Bills from the log: the log is folded into a ledger, and the ledger is rated. The ledger of the present month is
// kept, so that the next question reads only the events since. Any thread; one question after the other.

#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/service.h"
#include "base/result.h"
#include "billing/budget_marks.h"
#include "billing/invoice.h"
#include "billing/ledger.h"
#include "billing/opened_line.h"
#include "billing/rate.h"
#include "model/month.h"
#include "state/state.h"
#include "store/log.h"

namespace berth::daemon {

// What a bill needs of the state.
struct BillingFacts {
  PriceBook prices;
  std::uint64_t price_version = 0;
  std::map<std::string, state::ClosedMonth, std::less<>> closed;
  Timestamp now;
  Seq last_seq = std::numeric_limits<Seq>::max();  // what came later does not count
  bool queue_is_gone = false;                      // for bill(): there is no such queue now
  std::size_t past_reports = 0;  // for used_in(): quantities that were reported for months before this one
};
BillingFacts billing_facts(const state::State& state, Timestamp now);
// Returns how many quantities were reported for the months before this one, and so can change what they come to.
std::size_t reports_before(const state::State& state, Timestamp month);

// How much is kept and read so that a line of a floor opens quickly: a mark is a ledger of one instant, from which the
// log is read on.
struct LineLimits {
  std::size_t most_marks = 96;        // of a month
  std::uint64_t mark_every = 20'000;  // events; more where the marks become too many
  std::size_t most_stretches = 1000;  // of one answer
  std::int64_t most_events = 20'000;  // that are read for one answer, beside those up to its begin
};

class BillingDesk {
 public:
  explicit BillingDesk(const store::Log& log, LineLimits limits = {}) : log_(log), limits_(limits) {}

  // As api::Service::bill and ::closing say.
  Result<billing::Invoice> bill(const api::BillQuestion& question, const BillingFacts& facts);
  // As api::Service::open_line says.
  Result<billing::OpenedLine> open(const api::LineQuestion& question, const BillingFacts& facts);
  Result<MonthClosed> closing(const std::string& month, const BillingFacts& facts);

  // Returns what the queues have used in each of the periods until now, by the names that they have now: the bills of
  // their months added up, of a month that is in it only in part those of that part. Without prices everything costs
  // nothing, and so does what alone has no price: PeriodUse::unpriced. What it has read it keeps until it is asked for
  // other periods: of what is over the sums alone. Requires: facts.last_seq is not set.
  Result<std::vector<billing::PeriodUse>> used_in(const std::vector<Month>& periods, const BillingFacts& facts);

  // Returns a month that is not closed and has corrections on its bill; empty: there is none.
  Result<std::string> corrected_open_month(const BillingFacts& facts) const;

  // What keeps budgets from being watched, as the status warns of it; empty: nothing.
  void set_unwatched(std::string warning);
  std::string unwatched() const;

 private:
  // Where the log can be read on from when a part of a floor is followed.
  struct Mark {
    std::uint64_t next_seq = 1;
    Timestamp time;  // all events from then on are from next_seq on
    billing::Ledger ledger;
  };
  struct Kept {
    Month month;
    billing::Ledger ledger;
    std::uint64_t next_seq = 1;
    Timestamp last_time = {};  // of the last event that was read
    bool settled = false;      // the month is over, and all of it is counted
    Seq last_seq = 0;          // BillingFacts::last_seq of the question that it was read for
    std::vector<Mark> marks = {};
    std::uint64_t mark_every = 0;  // events
  };
  // A part of a period: a month, or what of a month lies in it.
  struct Slice {
    std::unique_ptr<Kept> kept;    // until it is over
    billing::PeriodUse use;        // once it is over
    std::uint64_t version = 0;     // of the prices
    std::size_t past_reports = 0;  // BillingFacts::past_reports of when it was read
    std::uint64_t next_seq = 0;    // renamed queues are looked for from here on; 0: it is not read yet
    bool asked_for = false;
  };
  struct BookInForce {
    PriceBook book;
    std::uint64_t version = 0;
  };

  Result<billing::Invoice> invoice(const billing::InvoiceQuestion& question, const BillingFacts& facts);
  Result<std::unique_ptr<Kept>> fold(const Month& month, billing::Window window, const BillingFacts& facts) const;
  Result<void> read_on(Kept& kept, Seq last_seq) const;
  Result<void> read_late_reports(Kept& kept, Seq last_seq) const;
  void mark(Kept& kept, std::uint64_t next_seq) const;
  // Calls `use` with the ledger of the month while nothing else reads it.
  enum class Freshness { kKeep, kReadAgain };
  template <class Use>
  auto with_ledger(const Month& month, const PriceBook& book, const BillingFacts& facts, Freshness freshness, Use&& use)
      -> decltype(use(std::declval<Kept&>()));
  Result<Timestamp> first_time() const;
  Result<void> read_slice(Slice& slice, const Month& span, const BookInForce& in_force, const BillingFacts& facts);
  Result<void> follow_renames(Slice& slice) const;
  Result<billing::PeriodUse> used_in_slice(const Month& month, const Month& span, const BillingFacts& facts);
  Result<BookInForce> book_for(const Month& month, const BillingFacts& facts) const;
  Result<billing::OpenedLine> open_in(const Kept& kept, const billing::Invoice& invoice, const PriceBook& book,
                                      const api::LineQuestion& question) const;
  Result<std::vector<EventRecord>> events_at(const std::vector<Seq>& seqs) const;
  Result<void> follow_job(const Kept& kept, billing::OpenedLine& opened, const billing::FoundLine& found) const;
  Result<void> follow_floor(const Kept& kept, billing::OpenedLine& opened, const billing::FoundLine& found,
                            const std::string& after) const;
  Result<PriceBook> book_of(std::uint64_t version, const BillingFacts& facts) const;

  const store::Log& log_;
  const LineLimits limits_;
  std::mutex mutex_;  // guards kept_
  std::unique_ptr<Kept> kept_;
  std::mutex past_mutex_;               // guards past_
  std::unique_ptr<Kept> past_;          // of the month before now that was asked for last
  mutable std::mutex unwatched_mutex_;  // guards unwatched_
  std::string unwatched_;
  std::mutex slices_mutex_;  // guards slices_
  std::map<std::pair<Timestamp, Timestamp>, Slice> slices_;
};

}  // namespace berth::daemon
