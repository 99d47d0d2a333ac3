#include "daemon/past_desk.h"

#include <sys/resource.h>

#include <algorithm>
#include <string>
#include <utility>

#include "daemon/past_service.h"
#include "daemon/snapshot.h"
#include "store/event_codec.h"

namespace berth::daemon {
namespace {

constexpr int kNicenessOfPast = 10;  // for this thread only: serving comes first

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

void PastDesk::at(const api::Moment& moment, std::function<void(Result<api::Service*>)> use) {
  {
    const std::lock_guard lock(mutex_);
    const bool has_room = waiting_.waiting_of(moment.client) < kMostWaiting && waiting_.size() < kMostInAll;
    if (!stopping_ && has_room) {
      waiting_.add(moment.client, {moment, std::move(use)});
      ready_.notify_one();
      return;
    }
  }
  use(Error{ErrorCode::kUnavailable, "too many of your requests for past states wait (at most " +
                                         std::to_string(kMostWaiting) + " at once); try again in a moment"});
}

void PastDesk::run() {
  ::setpriority(PRIO_PROCESS, 0, kNicenessOfPast);  // on Linux 0 is the calling thread
  while (true) {
    Wanted wanted;
    {
      std::unique_lock lock(mutex_);
      const auto is_ready = [&] { return stopping_ || !waiting_.empty(); };
      if (!ready_.wait_for(lock, kKeep, is_ready)) {
        lock.unlock();
        forget();
        lock.lock();
        ready_.wait(lock, is_ready);
      }
      if (stopping_) return;
      wanted = waiting_.take();
    }
    serve(wanted);
  }
}

void PastDesk::serve(const Wanted& wanted) {
  const auto seq = seq_of(wanted.moment);
  if (!seq) {
    wanted.use(seq.error());
    return;
  }
  if (auto there = go_to(*seq); !there) {
    forget();
    wanted.use(there.error());
    return;
  }
  if (!bills_) bills_ = std::make_unique<BillingDesk>(log_);
  const Timestamp time = std::max(state_->now(), wanted.moment.time);
  PastService past({*state_, time, *bills_, [this, &seq] { return meter_at(*seq); }}, now_);
  wanted.use(&past);
}

void PastDesk::forget() {
  state_.reset();
  meter_.reset();
  bills_.reset();
}

// --- which event ---

Result<Seq> PastDesk::seq_of(const api::Moment& moment) const {
  const Seq last = log_.last().seq;
  if (moment.seq > last)
    return not_found("at: event " + std::to_string(moment.seq) + " has not happened; the last one is " +
                     std::to_string(last));
  return moment.seq > 0 ? moment.seq : last_until(moment.time);
}

Result<Timestamp> PastDesk::time_of(Seq seq) const {
  Timestamp time;
  const auto read = log_.read(seq, [&](const store::Record& record) -> Result<bool> {
    time = record.time;
    return false;
  });
  if (!read) return read.error();
  return time;
}

// By halves: times never go back.
Result<Seq> PastDesk::last_until(Timestamp time) const {
  Timestamp now;
  now_.read([&](const api::View& view) { now = view.now; });
  if (time > now) return not_found("at: " + to_iso8601(time) + " is still to come; it is " + to_iso8601(now));
  Seq low = log_.first_seq();
  Seq high = log_.last().seq;
  const auto first = time_of(low);
  if (!first) return first.error();
  if (*first > time) return not_found("at: the log begins at " + to_iso8601(*first) + ", after " + to_iso8601(time));
  while (low < high) {
    const Seq middle = high - (high - low) / 2;
    const auto there = time_of(middle);
    if (!there) return there.error();
    if (*there <= time)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

// --- going there ---

// Returns nothing where the log is to be folded from its first event.
Result<std::optional<store::Checkpoint>> PastDesk::checkpoint_before(Seq seq) const {
  auto checkpoint = log_.load_checkpoint_at(seq);
  if (!checkpoint) return checkpoint.error();
  if (!*checkpoint && log_.first_seq() != 1)
    return not_found("at: the log begins at event " + std::to_string(log_.first_seq()) +
                     ", and no earlier state than that of its first checkpoint is kept");
  return checkpoint;
}

Result<void> PastDesk::begin_before(Seq seq) {
  state_.reset();  // before there is another one
  const auto checkpoint = checkpoint_before(seq);
  if (!checkpoint) return checkpoint.error();
  if (!*checkpoint) {
    state_.emplace();
    return {};
  }
  auto loaded = load_state((*checkpoint)->bytes);
  if (!loaded) return loaded.error();
  state_ = std::move(*loaded);
  return {};
}

// From `from` to `to`, both included.
Result<void> PastDesk::fold(Seq from, Seq to, const std::function<void(const EventRecord&)>& apply) {
  if (from > to) return {};
  return log_.read(from, [&](const store::Record& record) -> Result<bool> {
    const auto event = store::to_event(record);
    if (!event) return event.error();
    apply(*event);
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return Error{ErrorCode::kUnavailable, "the server stops"};
    }
    return record.seq < to;
  });
}

Result<void> PastDesk::go_to(Seq seq) {
  if (!state_ || state_->last_seq() > seq) {
    if (auto begun = begin_before(seq); !begun) return begun;
  }
  if (state_->last_seq() == seq) return {};
  auto done = fold(state_->last_seq() + 1, seq, [&](const EventRecord& event) { state_->apply(event); });
  state_->clear_unreconciled();
  state_->clear_roomier();
  return done;
}

Result<const billing::Meter*> PastDesk::meter_at(Seq seq) {
  if (!meter_ || meter_->last_seq() > seq) {
    meter_.reset();
    const auto checkpoint = checkpoint_before(seq);
    if (!checkpoint) return checkpoint.error();
    auto loaded = *checkpoint ? load_meter((*checkpoint)->bytes) : Result<billing::Meter>(billing::Meter());
    if (!loaded) return loaded.error();
    meter_ = std::move(*loaded);
  }
  const auto done = fold(meter_->last_seq() + 1, seq, [&](const EventRecord& event) { meter_->apply(event); });
  if (!done) {
    meter_.reset();
    return done.error();
  }
  return &*meter_;
}

}  // namespace berth::daemon
