#include "api/http/io_queue.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace berth::http {

IoQueue::IoQueue() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) { BERTH_CHECK(descriptor_ >= 0); }

IoQueue::~IoQueue() { ::close(descriptor_); }

void IoQueue::post(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    posted_.push_back(std::move(work));
  }
  // Every poster wakes for itself: one that came before it may not run for a long time.
  wake();
}

void IoQueue::dispatch(std::function<void()> work) {
  if (thread_.load() == std::this_thread::get_id()) return work();
  post(std::move(work));
}

void IoQueue::wake() {
  const std::uint64_t one = 1;
  std::ignore = ::write(descriptor_, &one, sizeof one);  // it fails only where it is readable already
}

void IoQueue::close() {
  std::deque<std::function<void()>> dropped;  // destroyed without the lock: it may post
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    dropped.swap(posted_);
  }
}

void IoQueue::belongs_to_this_thread() { thread_ = std::this_thread::get_id(); }

std::function<void()> IoQueue::take() {
  const std::lock_guard lock(mutex_);
  if (posted_.empty()) return {};
  std::function<void()> work = std::move(posted_.front());
  posted_.pop_front();
  return work;
}

void IoQueue::note_wakes() {
  std::uint64_t wakes = 0;
  std::ignore = ::read(descriptor_, &wakes, sizeof wakes);
}

void IoQueue::run_posted() {
  std::size_t count = 0;
  {
    const std::lock_guard lock(mutex_);
    count = posted_.size();
  }
  for (; count > 0; --count) {
    if (const auto work = take()) work();
  }
}

}  // namespace berth::http
