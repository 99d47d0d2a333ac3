#include "daemon/reader.h"

#include <spdlog/spdlog.h>

#include "base/check.h"
#include "base/hash.h"
#include "daemon/snapshot.h"

namespace berth::daemon {

// Timers are left out: control removes a due timer without an event, and only from the working state.
std::uint64_t vital_signs(const state::State& state) {
  Hasher hash;
  hash.add(state.last_seq()).add(state.next_job_id().value()).add(state.jobs().size()).add(state.running().size());
  hash.add(state.nominated().size()).add(state.nodes().size()).add(state.queues().size());
  const state::QueueState& root = state.queue(state.root());
  for (std::size_t d = 0; d < kDims; ++d) {
    hash.add(static_cast<std::uint64_t>(root.usage[d])).add(static_cast<std::uint64_t>(root.nominated[d]));
    hash.add(static_cast<std::uint64_t>(state.capacity()[d]));
  }
  hash.add(static_cast<std::uint64_t>(root.pending_below));
  return hash.digest();
}

Reader::Reader(state::State state, billing::Meter meter, store::Log& log, std::uint64_t checkpoint_every)
    : log_(log),
      checkpoint_every_(checkpoint_every),
      checkpointed_(state.last_seq()),
      access_(state),
      state_(std::move(state)),
      meter_(std::move(meter)),
      answers_([](Answers& answers) {
        for (auto& [answer, reply] : answers) answer(std::move(reply));
      }),
      events_([this](const SharedBatch& batch) {
        for (const EventRecord& record : batch->records) tell_watchers(record);
      }),
      thread_([this] { run(); }) {}

Reader::~Reader() { stop(); }

void Reader::push(DurableBatch batch) {
  Answers answers = std::move(batch.answers);
  for (const EventRecord& record : batch.records) access_.on(record.event);
  const auto shared = std::make_shared<const DurableBatch>(std::move(batch));
  {
    const std::lock_guard lock(queue_mutex_);
    pushed_.push_back(shared);
  }
  // Only now may an answer be given: the next read has to see its events.
  if (!answers.empty()) answers_.push(std::move(answers));
  if (!shared->records.empty()) events_.push(shared);
  ready_.notify_one();
}

void Reader::drain() {
  const std::lock_guard lock(state_mutex_);
  fold_pushed();
}

void Reader::stop() {
  {
    const std::lock_guard lock(queue_mutex_);
    if (stopping_) return;
    stopping_ = true;
  }
  ready_.notify_one();
  answers_.stop();
  events_.stop();
  thread_.join();
  checkpoint_if_due(true);
}

void Reader::run() {
  while (true) {
    {
      std::unique_lock lock(queue_mutex_);
      ready_.wait(lock, [&] { return stopping_ || !pushed_.empty(); });
      if (pushed_.empty()) return;
    }
    drain();
    checkpoint_if_due(false);
  }
}

void Reader::fold_pushed() {
  std::deque<SharedBatch> batches;
  {
    const std::lock_guard lock(queue_mutex_);
    batches.swap(pushed_);
  }
  for (const SharedBatch& batch : batches) fold(*batch);
}

void Reader::fold(const DurableBatch& batch) {
  if (metrics_) metrics_->on_iteration(batch.work);
  for (const EventRecord& record : batch.records) {
    if (metrics_) metrics_->on_event(record, state_);
    meter_.apply(record);
    state_.apply(record);
  }
  state_.clear_unreconciled();
  state_.clear_roomier();
  if (batch.vital_signs != 0) BERTH_CHECK(vital_signs(state_) == batch.vital_signs);
}

void Reader::tell_watchers(const EventRecord& record) {
  const api::LiveEvent event{record};
  const std::lock_guard lock(watch_mutex_);
  for (const auto& [id, watcher] : watchers_) watcher(event);
}

void Reader::checkpoint_if_due(bool now) {
  std::string bytes;
  std::uint64_t seq = 0;
  {
    const std::lock_guard lock(state_mutex_);
    seq = state_.last_seq();
    if (seq == checkpointed_ || (!now && seq < checkpointed_ + checkpoint_every_)) return;
    bytes = save_snapshot(state_, meter_);
  }
  if (auto saved = log_.save_checkpoint(seq, bytes); !saved) {
    // The log itself is complete; without this checkpoint the next start folds more records.
    spdlog::warn("checkpoint at event {} was not written: {}", seq, saved.error().message);
    return;
  }
  checkpointed_ = seq;
}

void Reader::read(const std::function<void(state::State&, const billing::Meter&)>& look) {
  const std::lock_guard lock(state_mutex_);
  fold_pushed();
  look(state_, meter_);
}

void Reader::begin_metrics() {
  const std::lock_guard lock(state_mutex_);
  metrics_.emplace(state_);
}

void Reader::read_metrics(const std::function<void(state::State&, const SchedulerMetrics&)>& look) {
  const std::lock_guard lock(state_mutex_);
  fold_pushed();
  BERTH_CHECK(metrics_.has_value());
  look(state_, *metrics_);
}

std::uint64_t Reader::watch(Watcher watcher) {
  const std::lock_guard lock(watch_mutex_);
  watchers_.emplace(next_watcher_, std::move(watcher));
  return next_watcher_++;
}

void Reader::unwatch(std::uint64_t id) {
  const std::lock_guard lock(watch_mutex_);
  watchers_.erase(id);
}

}  // namespace berth::daemon
