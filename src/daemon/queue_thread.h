#pragma once
// A thread that does the same work with each item pushed to it, in order.

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace berth::daemon {

template <class Item>
class QueueThread {
 public:
  explicit QueueThread(std::function<void(Item&)> work) : work_(std::move(work)), thread_([this] { run(); }) {}
  ~QueueThread() { stop(); }
  QueueThread(const QueueThread&) = delete;
  QueueThread& operator=(const QueueThread&) = delete;

  void push(Item item) {
    {
      const std::lock_guard lock(mutex_);
      items_.push_back(std::move(item));
    }
    ready_.notify_one();
  }

  // Works off the rest and ends the thread.
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    ready_.notify_one();
    if (thread_.joinable()) thread_.join();
  }

 private:
  void run() {
    while (true) {
      std::deque<Item> items;
      {
        std::unique_lock lock(mutex_);
        ready_.wait(lock, [&] { return stopping_ || !items_.empty(); });
        if (items_.empty()) return;
        items.swap(items_);
      }
      for (Item& item : items) work_(item);
    }
  }

  const std::function<void(Item&)> work_;
  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<Item> items_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace berth::daemon
