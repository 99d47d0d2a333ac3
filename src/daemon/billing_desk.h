#pragma once
// Bills from the log: the log is folded into a ledger, and the ledger is rated. The ledger of the present month is
// kept, so that the next question reads only the events since. Any thread; one question after the other.

#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "api/service.h"
#include "base/result.h"
#include "billing/invoice.h"
#include "billing/ledger.h"
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
};
BillingFacts billing_facts(const state::State& state, Timestamp now);

class BillingDesk {
 public:
  explicit BillingDesk(const store::Log& log) : log_(log) {}

  // As api::Service::bill and ::closing say.
  Result<billing::Invoice> bill(const api::BillQuestion& question, const BillingFacts& facts);
  Result<MonthClosed> closing(const std::string& month, const BillingFacts& facts);

  // The bill of the root for the present month, also without prices: then everything costs nothing.
  Result<billing::Invoice> of_now(const BillingFacts& facts);

 private:
  struct Kept {
    Month month;
    billing::Ledger ledger;
    std::uint64_t next_seq = 1;
  };

  Result<billing::Invoice> invoice(const Month& month, const std::string& queue, const PriceBook& book,
                                   std::uint64_t version, const BillingFacts& facts);
  Result<std::unique_ptr<Kept>> fold(const Month& month, billing::Window window, const BillingFacts& facts);
  Result<void> read_on(Kept& kept, Seq last_seq) const;
  Result<PriceBook> book_of(std::uint64_t version, const BillingFacts& facts) const;

  const store::Log& log_;
  std::mutex mutex_;  // guards kept_
  std::unique_ptr<Kept> kept_;
};

}  // namespace berth::daemon
