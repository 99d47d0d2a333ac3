#pragma once
// The reader: a second state that folds only durable events, on a thread of its own. Lists, explanations, usage and
// streams are served from it, so no request for reading touches the loop. It also proves P10 all the time: after each
// batch its vital signs must equal those of the loop.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/result.h"
#include "billing/meter.h"
#include "daemon/inbox.h"
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
  using Watcher = std::function<void(const EventRecord&)>;

  // Starts from the content of a checkpoint. Every `checkpoint_every` records its thread saves a checkpoint to `log`.
  Reader(state::State state, billing::Meter meter, store::Log& log, std::uint64_t checkpoint_every);
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  void push(DurableBatch batch);
  // Waits until everything pushed so far is folded.
  void drain();
  // Folds the rest, writes a last checkpoint and ends the thread.
  void stop();

  // Starts the metrics. Replayed events before this call do not count: an earlier process has counted them.
  void begin_metrics();

  void read(const std::function<void(state::State&, const billing::Meter&)>& look);
  void read_metrics(const std::function<void(state::State&, const SchedulerMetrics&)>& look);
  std::uint64_t watch(Watcher watcher);
  void unwatch(std::uint64_t id);

 private:
  void run();
  void fold(const DurableBatch& batch);
  void checkpoint_if_due(bool now);

  store::Log& log_;
  const std::uint64_t checkpoint_every_;
  std::uint64_t checkpointed_ = 0;

  std::mutex state_mutex_;  // guards state_, meter_, metrics_
  state::State state_;
  billing::Meter meter_;
  std::optional<SchedulerMetrics> metrics_;

  std::mutex watch_mutex_;
  std::map<std::uint64_t, Watcher> watchers_;
  std::uint64_t next_watcher_ = 1;

  std::mutex queue_mutex_;
  std::condition_variable ready_;
  std::condition_variable drained_;
  std::deque<DurableBatch> queue_;
  bool busy_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace berth::daemon
