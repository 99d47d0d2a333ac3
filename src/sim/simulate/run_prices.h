#pragma once
// What a run would have cost and earned. A price book is applied as it is at its end: its last prices are taken for the
// whole run, because the times of a trace are its own.

#include <string>
#include <vector>

#include "base/result.h"
#include "billing/ledger.h"
#include "model/event.h"
#include "model/price_book.h"
#include "sim/report/run_result.h"
#include "sim/simulate/workload.h"

namespace berth::sim {

struct RunPrices {
  std::string file;
  PriceBook book;  // one period, from the begin of the run on
};

// Reads the file and checks that it has a price for each of these GPU models. `note` tells which prices were taken.
Result<RunPrices> read_run_prices(const std::string& path, std::string& note);
// The error names a GPU model of the fleet that has no price.
Result<void> check_models(const RunPrices& prices, const std::vector<std::string>& models);

// Folds the events of a run. A bill is of the queues of the workload, by the name of their tenant if they have jobs.
class RunBiller {
 public:
  RunBiller(const std::vector<RunPrices>& prices, const Workload& workload);
  void apply(const EventRecord& record);
  // Requires: no event of an earlier time follows.
  Result<std::vector<BookBill>> bills(Timestamp now);

 private:
  const std::vector<RunPrices>& prices_;
  const Workload& workload_;
  std::vector<billing::Ledger> ledgers_;  // by price book
};

}  // namespace berth::sim
