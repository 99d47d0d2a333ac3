#pragma once
// The reader: a second state that folds only durable events. Lists, explanations, usage and streams are served from it,
// so no request for reading touches the loop. It also proves P10 all the time: after each batch its vital signs must
// equal those of the loop.
//
// Nothing that the loop or an answer needs ever waits for a read:
//   1. push only appends to queues.
//   2. Answers are given on a thread of their own, whether or not the batch is folded.
//   3. A read folds what was pushed before it looks. So it sees every event that was answered before it began.
//   4. Watchers are told on another thread.
// While nobody reads, a thread folds, so that what waits to be folded stays short. It also saves checkpoints.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "api/service.h"
#include "base/result.h"
#include "billing/meter.h"
#include "daemon/access_table.h"
#include "daemon/inbox.h"
#include "daemon/queue_thread.h"
#include "daemon/scheduler_metrics.h"
#include "model/event.h"
#include "state/state.h"
#include "store/log.h"

namespace berth::daemon {

// Returns a hash over a few numbers that equal states share. It is cheap enough to compare after each batch.
std::uint64_t vital_signs(const state::State& state);

struct DurableBatch {
  std::vector<EventRecord> records;
  std::vector<std::pair<Answer, Result<control::Reply>>> answers;
  std::uint64_t vital_signs = 0;  // 0: not known (recovery)
  IterationWork work = {};
};

class Reader {
 public:
  using Watcher = api::Service::Watcher;

  // Starts from the content of a checkpoint. Every `checkpoint_every` records its thread saves a checkpoint to `log`.
  Reader(state::State state, billing::Meter meter, store::Log& log, std::uint64_t checkpoint_every);
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  void push(DurableBatch batch);
  // Folds everything pushed so far.
  void drain();
  // Gives the answers that are left, folds the rest, writes a last checkpoint and ends the threads.
  void stop();

  // Starts the metrics. Replayed events before this call do not count: an earlier process has counted them.
  void begin_metrics();

  const AccessTable& access() const { return access_; }
  AccessTable& access() { return access_; }

  // One read at a time: a read may wait for another one.
  void read(const std::function<void(state::State&, const billing::Meter&)>& look);
  void read_metrics(const std::function<void(state::State&, const SchedulerMetrics&)>& look);
  std::uint64_t watch(Watcher watcher);
  void unwatch(std::uint64_t id);

 private:
  using Answers = std::vector<std::pair<Answer, Result<control::Reply>>>;
  using SharedBatch = std::shared_ptr<const DurableBatch>;

  void run();
  void fold_pushed();  // requires: state_mutex_ is held
  void fold(const DurableBatch& batch);
  void tell_watchers(const EventRecord& record);
  void checkpoint_if_due(bool now);

  store::Log& log_;
  const std::uint64_t checkpoint_every_;
  std::uint64_t checkpointed_ = 0;

  AccessTable access_;

  std::mutex state_mutex_;  // guards state_, meter_, metrics_
  state::State state_;
  billing::Meter meter_;
  std::optional<SchedulerMetrics> metrics_;

  std::mutex watch_mutex_;
  std::map<std::uint64_t, Watcher> watchers_;
  std::uint64_t next_watcher_ = 1;

  std::mutex queue_mutex_;
  std::condition_variable ready_;
  std::deque<SharedBatch> pushed_;  // not folded yet
  bool stopping_ = false;

  QueueThread<Answers> answers_;
  QueueThread<SharedBatch> events_;
  std::thread thread_;  // folds
};

}  // namespace berth::daemon
