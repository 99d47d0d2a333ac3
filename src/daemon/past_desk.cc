#include "daemon/past_desk.h"

#include <sys/resource.h>

#include <string>
#include <utility>

#include "daemon/past_service.h"
#include "daemon/snapshot.h"
#include "store/event_codec.h"

namespace berth::daemon {
namespace {

constexpr int kNiceness = 10;  // for this thread only: serving comes first

}  // namespace

PastDesk::PastDesk(const store::Log& log, api::Service& now) : log_(log), now_(now), thread_([this] { run(); }) {}

PastDesk::~PastDesk() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  ready_.notify_one();
  thread_.join();
}

void PastDesk::at(Seq seq, std::function<void(Result<api::Service*>)> use) {
  {
    const std::lock_guard lock(mutex_);
    if (!stopping_ && waiting_.size() < kMostWaiting) {
      waiting_.push_back({seq, std::move(use)});
      ready_.notify_one();
      return;
    }
  }
  use(Error{ErrorCode::kUnavailable, "too many requests for past states wait; try again in a moment"});
}

void PastDesk::run() {
  ::setpriority(PRIO_PROCESS, 0, kNiceness);  // on Linux 0 is the calling thread
  while (true) {
    Wanted wanted;
    {
      std::unique_lock lock(mutex_);
      const auto is_ready = [&] { return stopping_ || !waiting_.empty(); };
      if (!ready_.wait_for(lock, kKeep, is_ready)) {
        lock.unlock();
        state_.reset();
        lock.lock();
        ready_.wait(lock, is_ready);
      }
      if (stopping_) return;
      wanted = std::move(waiting_.front());
      waiting_.pop_front();
    }
    serve(wanted);
  }
}

void PastDesk::serve(const Wanted& wanted) {
  if (auto there = go_to(wanted.seq); !there) {
    state_.reset();
    wanted.use(there.error());
    return;
  }
  PastService past(*state_, now_);
  wanted.use(&past);
}

// From the nearest checkpoint, or from the first event.
Result<void> PastDesk::begin_before(Seq seq) {
  state_.reset();  // before there is another one
  auto checkpoint = log_.load_checkpoint_at(seq);
  if (!checkpoint) return checkpoint.error();
  if (!*checkpoint && log_.first_seq() != 1)
    return not_found("at: the log begins at event " + std::to_string(log_.first_seq()) +
                     ", and no earlier state than that of " + "its first checkpoint is kept");
  if (!*checkpoint) {
    state_.emplace();
    return {};
  }
  auto loaded = load_state((*checkpoint)->bytes);
  if (!loaded) return loaded.error();
  state_ = std::move(*loaded);
  return {};
}

Result<void> PastDesk::go_to(Seq seq) {
  if (seq > log_.last().seq)
    return not_found("at: event " + std::to_string(seq) + " has not happened; the last one is " +
                     std::to_string(log_.last().seq));
  if (!state_ || state_->last_seq() > seq) {
    if (auto begun = begin_before(seq); !begun) return begun;
  }
  if (state_->last_seq() == seq) return {};
  auto done = log_.read(state_->last_seq() + 1, [&](const store::Record& record) -> Result<bool> {
    const auto event = store::to_event(record);
    if (!event) return event.error();
    state_->apply(*event);
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return Error{ErrorCode::kUnavailable, "the server stops"};
    }
    return record.seq < seq;
  });
  state_->clear_unreconciled();
  state_->clear_roomier();
  return done;
}

}  // namespace berth::daemon
