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

struct Letter {
  Command command;
  Answer answer;  // empty for reports
};

class Inbox {
 public:
  static constexpr std::size_t kMost = 100'000;  // requests beyond are refused; reports never are

  // False when the inbox is full or closed.
  bool put(Letter letter) {
    {
      const std::lock_guard lock(mutex_);
      if (closed_ || (letter.answer && letters_.size() >= kMost)) return false;
      letters_.push_back(std::move(letter));
    }
    ready_.notify_one();
    return true;
  }

  // Waits until there is something, `until`, or a close. When `expected` letters came last time, lingers a moment for
  // as many again, so that clients who write in step share one sync.
  std::vector<Letter> take(std::chrono::steady_clock::time_point until, std::size_t expected) {
    std::unique_lock lock(mutex_);
    ready_.wait_until(lock, until, [&] { return closed_ || woken_ || !letters_.empty(); });
    if (!letters_.empty() && letters_.size() < expected && !closed_) {
      ready_.wait_for(lock, kLinger, [&] { return closed_ || letters_.size() >= expected; });
    }
    woken_ = false;
    return std::exchange(letters_, {});
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
    return letters_.size();
  }

 private:
  static constexpr std::chrono::microseconds kLinger{600};
  mutable std::mutex mutex_;
  std::condition_variable ready_;
  std::vector<Letter> letters_;
  bool closed_ = false;
  bool woken_ = false;
};

}  // namespace berth::daemon
