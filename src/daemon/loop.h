#pragma once
// The loop: the only place where commands become events, and the only place that decides by the clock (server_clock.h).
// The order is always the same:
//
// 1. drain the inbox;
// 2. run the iteration (decide and apply to the working state);
// 3. append the batch in one sync;
// 4. only then hand the batch to the reader (replies, reads, streams) and the effects to the backend.
//
// A failed append ends the process.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>

#include "backend/backend.h"
#include "control/iteration.h"
#include "daemon/inbox.h"
#include "daemon/reader.h"
#include "daemon/server_clock.h"
#include "state/state.h"
#include "store/log.h"

namespace berth::daemon {

class Loop {
 public:
  Loop(state::State state, std::uint64_t epoch, store::Log& log, Inbox& inbox, Reader& reader,
       backend::Backend& backend, ServerClock& clock);
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  void start();
  // Closes the inbox, finishes the running iteration and ends the thread.
  void stop();

 private:
  void run();
  void iteration(std::vector<QueuedRequest> requests);
  void append(const control::Iteration& iteration);
  Timestamp read_clock() { return std::max(state_.now(), clock_.now()); }

  state::State state_;
  const std::uint64_t epoch_;
  store::Log& log_;
  Inbox& inbox_;
  Reader& reader_;
  backend::Backend& backend_;
  ServerClock& clock_;
  control::IterationMemory memory_;
  Timestamp wake_at_;
  bool again_ = true;
  std::chrono::steady_clock::time_point next_cycle_{};
  std::chrono::steady_clock::duration append_took_{};
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace berth::daemon
