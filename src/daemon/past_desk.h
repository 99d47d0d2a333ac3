#pragma once
// The state at past moments, for reads (api::Service::at). One thread of low priority folds the nearest checkpoint and
// the events after it, one request at a time, so that neither commands nor other reads wait for it. The meter is folded
// only for an answer that needs it, and so is the ledger of bills, which begins with the log.
// Subjects take turns: one that asks for many moments waits for itself.
//
// There is one past state at most. It is kept for kKeep after its last use, for a reader asks several things about a
// moment, and the next moment is often a later one that can be folded from there. At most kMostWaiting requests of one
// subject wait, and kMostInAll of all.

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "api/http/turns.h"
#include "api/service.h"
#include "base/result.h"
#include "billing/meter.h"
#include "daemon/billing_desk.h"
#include "model/event.h"
#include "state/state.h"
#include "store/log.h"

namespace berth::daemon {

class PastDesk {
 public:
  static constexpr std::size_t kMostWaiting = 16;
  static constexpr std::size_t kMostInAll = 256;
  static constexpr std::chrono::seconds kKeep{60};

  // Both must outlive it. What does not depend on the moment is asked of `now`.
  PastDesk(const store::Log& log, api::Service& now);
  ~PastDesk();
  PastDesk(const PastDesk&) = delete;
  PastDesk& operator=(const PastDesk&) = delete;

  void at(const api::Moment& moment, std::function<void(Result<api::Service*>)> use);

 private:
  struct Wanted {
    api::Moment moment;
    std::function<void(Result<api::Service*>)> use;
  };

  void run();
  void serve(const Wanted& wanted);
  void forget();
  Result<Seq> seq_of(const api::Moment& moment) const;
  Result<Seq> last_until(Timestamp time) const;
  Result<Timestamp> time_of(Seq seq) const;
  Result<void> go_to(Seq seq);
  Result<void> begin_before(Seq seq);
  Result<const billing::Meter*> meter_at(Seq seq);
  Result<std::optional<store::Checkpoint>> checkpoint_before(Seq seq) const;
  Result<void> fold(Seq from, Seq to, const std::function<void(const EventRecord&)>& apply);

  const store::Log& log_;
  api::Service& now_;
  // For the thread alone.
  std::optional<state::State> state_;
  std::optional<billing::Meter> meter_;  // of the same moment or an earlier one
  std::unique_ptr<BillingDesk> bills_;

  std::mutex mutex_;
  std::condition_variable ready_;
  http::Turns<Wanted> waiting_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace berth::daemon
