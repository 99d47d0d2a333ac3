#include "api/http/stream_queue.h"

#include <utility>

namespace berth::http {

StreamQueue::StreamQueue(std::size_t limit_bytes, std::function<void()> wake)
    : limit_bytes_(limit_bytes), wake_(std::move(wake)) {}

void StreamQueue::wake(std::unique_lock<std::mutex> lock) {
  const bool due = std::exchange(wake_due_, false);
  lock.unlock();
  if (due) wake_();
}

bool StreamQueue::write(Chunk chunk) {
  std::unique_lock lock(mutex_);
  if (closed_ || gone_ || overflowed_) return false;
  pending_bytes_ += chunk->size();
  overflowed_ = pending_bytes_ > limit_bytes_;
  if (overflowed_) {
    chunks_.clear();   // a stream with a gap is worth nothing; give the memory back at once
    wake_due_ = true;  // even if the connection is busy writing, which is just what hangs
  } else {
    chunks_.push_back(std::move(chunk));
    drained_due_ = true;
  }
  const bool accepted = !overflowed_;
  wake(std::move(lock));
  return accepted;
}

void StreamQueue::close() {
  std::unique_lock lock(mutex_);
  if (closed_) return;
  closed_ = true;
  wake(std::move(lock));
}

bool StreamQueue::open() const {
  const std::lock_guard lock(mutex_);
  return !closed_ && !gone_ && !overflowed_;
}

std::size_t StreamQueue::pending_bytes() const {
  const std::lock_guard lock(mutex_);
  return pending_bytes_;
}

void StreamQueue::on_close(std::function<void()> callback) {
  {
    const std::lock_guard lock(mutex_);
    if (!gone_) {
      on_close_.push_back(std::move(callback));
      return;
    }
  }
  callback();
}

void StreamQueue::on_drained(std::function<void()> callback) {
  std::unique_lock lock(mutex_);
  on_drained_ = std::move(callback);
  drained_due_ = true;
  wake(std::move(lock));
}

std::string StreamQueue::take(std::size_t max_bytes) {
  const std::lock_guard lock(mutex_);
  wake_due_ = true;
  std::string bytes;
  while (!chunks_.empty() && (bytes.empty() || bytes.size() + chunks_.front()->size() <= max_bytes)) {
    bytes += *chunks_.front();
    chunks_.pop_front();
  }
  in_flight_bytes_ = bytes.size();
  return bytes;
}

void StreamQueue::taken_is_sent() {
  const std::lock_guard lock(mutex_);
  pending_bytes_ -= std::exchange(in_flight_bytes_, 0);
}

bool StreamQueue::overflowed() const {
  const std::lock_guard lock(mutex_);
  return overflowed_;
}

bool StreamQueue::ended() const {
  const std::lock_guard lock(mutex_);
  return closed_ && chunks_.empty();
}

std::function<void()> StreamQueue::take_drained() {
  const std::lock_guard lock(mutex_);
  if (!drained_due_ || !chunks_.empty()) return {};
  drained_due_ = false;
  return on_drained_;
}

void StreamQueue::reader_gone() {
  std::vector<std::function<void()>> callbacks;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(gone_, true)) return;
    chunks_.clear();
    callbacks.swap(on_close_);
    on_drained_ = nullptr;
  }
  for (const auto& callback : callbacks) callback();
}

}  // namespace berth::http
