#pragma once
// The bounded queue between the writers of one stream, on any thread, and its connection, on its I/O thread. Bytes
// count as pending until the kernel has taken them. Callbacks are called without the lock, on the connection's thread.

#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "api/http/stream.h"

namespace berth::http {

class StreamQueue : public StreamSink {
 public:
  // `wake` tells the connection that there is something to do; it is called once per batch, not once per write.
  StreamQueue(std::size_t limit_bytes, std::function<void()> wake);

  // For the writers.
  bool write(Chunk chunk) override;
  void close() override;
  bool open() const override;
  std::size_t pending_bytes() const override;
  void on_close(std::function<void()> callback) override;
  void on_drained(std::function<void()> callback) override;

  // For the connection.
  std::string take(std::size_t max_bytes);  // at least one chunk if there is any; empty if there is none
  void taken_is_sent();
  bool overflowed() const;               // a reader too slow: nothing more will come
  bool ended() const;                    // closed by the writers, and everything was taken
  std::function<void()> take_drained();  // what was given to on_drained, if its call is due; else empty
  void reader_gone();                    // no more writes; calls on_close once

 private:
  void wake(std::unique_lock<std::mutex> lock);

  const std::size_t limit_bytes_;
  const std::function<void()> wake_;
  mutable std::mutex mutex_;
  std::deque<Chunk> chunks_;
  std::size_t pending_bytes_ = 0;
  std::size_t in_flight_bytes_ = 0;
  bool wake_due_ = true;
  bool drained_due_ = false;
  bool closed_ = false;
  bool overflowed_ = false;
  bool gone_ = false;
  std::vector<std::function<void()>> on_close_;
  std::function<void()> on_drained_;
};

}  // namespace berth::http
