#pragma once
// The inbox: the end of all threads. Requests and reports come in from any thread; the loop takes all of them at once,
// in order.

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
  Answer answer;        // may be empty for reports
  bool report = false;  // with an answer: it is a report all the same, and never refused for lack of room
  Origin by = {};       // the request that asks for it; empty: none does
};

class Inbox {
 public:
  static constexpr std::size_t kMost = 100'000;  // more requests are refused; reports never are

  // Returns false if the inbox is full or closed.
  bool put(QueuedRequest queued) {
    bool enough = false;
    {
      const std::lock_guard lock(mutex_);
      if (closed_ || (queued.answer && !queued.report && requests_.size() >= kMost)) return false;
      requests_.push_back(std::move(queued));
      enough = requests_.size() >= wanted_;
    }
    if (enough) ready_.notify_one();
    return true;
  }

  // Returns all requests, in order. It waits until there is one, until `until`, or until close(). Then it waits up to
  // `linger` for the expected rest, so that clients which write again after each answer share one sync.
  //
  // Expected are as many requests as came last time. If last time came as many as expected, the requests that already
  // wait at this call are expected in addition.
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
  std::size_t wanted_ = 1;  // number of requests at which the loop is woken
  std::size_t came_ = 0;    // number of requests that came last time
  bool came_as_expected_ = true;
};

}  // namespace berth::daemon
