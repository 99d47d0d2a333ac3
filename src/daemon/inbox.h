#pragma once
// The inbox: where threads end. Requests and reports come in from any thread; the loop takes them all at once, in
// order.

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "base/result.h"
#include "control/handle.h"
#include "model/command.h"

namespace berth::daemon {

using Answer = std::function<void(Result<control::Reply>)>;

struct QueuedRequest {
  Command command;
  Answer answer;  // empty for reports
};

class Inbox {
 public:
  static constexpr std::size_t kMost = 100'000;  // requests beyond are refused; reports never are

  // False when the inbox is full or closed.
  bool put(QueuedRequest queued) {
    bool enough = false;
    {
      const std::lock_guard lock(mutex_);
      if (closed_ || (queued.answer && requests_.size() >= kMost)) return false;
      requests_.push_back(std::move(queued));
      enough = requests_.size() >= wanted_;
    }
    if (enough) ready_.notify_one();
    return true;
  }

  // Waits until there is something, `until`, or a close; then up to `linger` for those who are expected beside, so that
  // clients who write whenever they are answered share one sync: as many as came last time, and, unless too many were
  // expected then, as many as wait already when those are about to be answered.
  std::vector<QueuedRequest> take(std::chrono::steady_clock::time_point until,
                                  std::chrono::steady_clock::duration linger) {
    std::unique_lock lock(mutex_);
    const std::size_t expected = came_ + (came_as_expected_ ? requests_.size() : 0);
    ready_.wait_until(lock, until, [&] { return closed_ || woken_ || !requests_.empty(); });
    if (!requests_.empty()) {
      wanted_ = expected;
      ready_.wait_for(lock, linger, [&] { return closed_ || requests_.size() >= expected; });
      wanted_ = 1;
      came_ = requests_.size();
      came_as_expected_ = came_ >= expected;
    }
    woken_ = false;
    return std::exchange(requests_, {});
  }

  void wake() {
    {
      const std::lock_guard lock(mutex_);
      woken_ = true;
    }
    ready_.notify_one();
  }
  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    ready_.notify_all();
  }
  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return requests_.size();
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable ready_;
  std::vector<QueuedRequest> requests_;
  bool closed_ = false;
  bool woken_ = false;
  std::size_t wanted_ = 1;  // so many are worth waking the loop for
  std::size_t came_ = 0;    // last time
  bool came_as_expected_ = true;
};

}  // namespace berth::daemon
