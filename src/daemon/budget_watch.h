#pragma once
// Looks now and then what of budgets and grants is used, and tells the loop which marks they have passed (50, 80, 100
// percent; that a grant has ended). The loop makes an event of it; the cycle reads that mark and nothing else. It looks
// also when a period ends or begins. Only queues that have a budget or grant cost work.

#include <condition_variable>
#include <mutex>
#include <thread>

#include "daemon/billing_desk.h"
#include "daemon/inbox.h"
#include "daemon/reader.h"
#include "daemon/server_clock.h"

namespace berth::daemon {

class BudgetWatch {
 public:
  BudgetWatch(Reader& reader, BillingDesk& desk, Inbox& inbox, ServerClock& clock);
  ~BudgetWatch();
  BudgetWatch(const BudgetWatch&) = delete;
  BudgetWatch& operator=(const BudgetWatch&) = delete;

 private:
  void run();
  // Returns the next time at which a period begins or ends.
  Timestamp look();
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
