#include "daemon/queue_desk.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "explain/why.h"
#include "state/within.h"

namespace berth::daemon {
namespace {

constexpr std::chrono::milliseconds kLongestRound{100};

std::optional<std::int64_t> limit_of(const Amounts& limits) {
  return limits[kDimGpu] == kUnlimited ? std::nullopt : std::optional(limits[kDimGpu]);
}

// Who reads the object sees the whole tree, but not the jobs of others.
explain::Viewer viewer_of(const state::QueueState& queue) { return explain::Viewer::sees_below(queue.id); }

}  // namespace

std::vector<QueueSummary> summaries_of(const state::State& state) {
  const auto borrowed_of = [&](const state::QueueState& queue) {
    return (queue.usage - state::usage_within_all(state, queue))[kDimGpu];
  };
  std::int64_t borrowed = 0;  // in all
  for (const state::QueueState& queue : state.queues()) {
    if (!queue.removed && queue.id != state.root() && queue.is_leaf()) borrowed += borrowed_of(queue);
  }
  std::vector<QueueSummary> all;
  for (const state::QueueState& queue : state.queues()) {
    if (queue.removed || queue.id == state.root()) continue;
    QueueSummary one;
    one.path = queue.path;
    one.weight = queue.weight;
    if (queue.configured.states(kDimGpu)) one.guaranteed_milli = queue.configured.amounts[kDimGpu];
    one.max_milli = limit_of(queue.max);
    one.lending_limit_milli = limit_of(queue.lending_limit);
    if (queue.trust_domain.valid()) one.trust_domain = state.trust_domains()[queue.trust_domain.index()];
    one.used_milli = queue.usage[kDimGpu];
    one.borrowed_milli = borrowed_of(queue);
    if (queue.guaranteed.states(kDimGpu)) {
      const std::int64_t unused = queue.guaranteed.amounts[kDimGpu] - queue.within_usage[kDimGpu];
      one.lent_milli = std::max<std::int64_t>(0, std::min(unused, borrowed - one.borrowed_milli));
    }
    one.pending = queue.pending_below;
    one.running = queue.running_below;
    all.push_back(std::move(one));
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return all;
}

QueueDesk::QueueDesk(Reader& reader, backend::Backend& backend, ServerClock& clock)
    : reader_(reader), backend_(backend), clock_(clock), thread_([this] { run(); }) {}

QueueDesk::~QueueDesk() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stopped_.notify_one();
  thread_.join();
}

void QueueDesk::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    lock.unlock();
    backend_.show_queues(look());
    lock.lock();
    stopped_.wait_for(lock, std::chrono::milliseconds(kEveryMs), [this] { return stopping_; });
  }
}

// The leaves are explained in turn, so that each one is at most some rounds old.
std::vector<QueueSummary> QueueDesk::look() {
  std::vector<QueueSummary> all;
  reader_.read([&](state::State& state, const billing::Meter&) {
    all = summaries_of(state);
    const Timestamp now = std::max(state.now(), clock_.now());
    const auto end = std::chrono::steady_clock::now() + kLongestRound;
    std::vector<const QueueSummary*> turn;
    for (const QueueSummary& one : all) {
      const state::QueueState& queue = *state.queue_at(one.path);
      if (queue.pending.empty())
        whys_.erase(one.path);
      else
        turn.push_back(&one);
    }
    const auto next = std::find_if(turn.begin(), turn.end(), [this](const auto* one) { return one->path >= next_; });
    std::rotate(turn.begin(), next, turn.end());
    if (turn.size() > kMostExplained) turn.resize(kMostExplained);
    for (const QueueSummary* one : turn) {
      if (std::chrono::steady_clock::now() > end) break;
      const state::QueueState& queue = *state.queue_at(one->path);
      whys_[one->path] = explain::why(state, queue.pending.begin()->job, now, viewer_of(queue)).answer.headline;
      next_ = one->path + '\0';
    }
  });
  for (QueueSummary& one : all) {
    if (const auto why = whys_.find(one.path); why != whys_.end()) one.why = why->second;
  }
  return all;
}

}  // namespace berth::daemon
