#pragma once
// Looks now and then what budgets are used of, and tells the loop which marks they have passed (50, 80, 100 percent).
// The loop makes an event of it; the cycle reads that mark and nothing else. Only queues that have a budget cost work.

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "billing/invoice.h"
#include "daemon/billing_desk.h"
#include "daemon/inbox.h"
#include "daemon/reader.h"
#include "daemon/server_clock.h"

namespace berth::daemon {

// A queue with a budget, and the last mark of it.
struct WatchedBudget {
  std::string queue;
  BudgetConfig budget;
  state::BudgetMark mark;
};

// Returns the marks that differ from the last ones, by this bill of the root for the month until now.
// Where something has no price, the marks of budgets in money stay as they are.
std::vector<BudgetMarked> marks_passed(const std::vector<WatchedBudget>& budgets, const billing::Invoice& invoice,
                                       const Month& month);

class BudgetWatch {
 public:
  BudgetWatch(Reader& reader, BillingDesk& desk, Inbox& inbox, ServerClock& clock);
  ~BudgetWatch();
  BudgetWatch(const BudgetWatch&) = delete;
  BudgetWatch& operator=(const BudgetWatch&) = delete;

 private:
  void run();
  void look();
  // Warns of it where it is new; empty: all are watched.
  void tell_unwatched(std::string why);

  Reader& reader_;
  BillingDesk& desk_;
  Inbox& inbox_;
  ServerClock& clock_;
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace berth::daemon
