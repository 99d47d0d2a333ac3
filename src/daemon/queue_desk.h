#pragma once
// Shows the queue tree to a backend that has a place for it (backend.h: show_queues), every few seconds.

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "backend/backend.h"
#include "daemon/reader.h"
#include "daemon/server_clock.h"
#include "model/queue_summary.h"
#include "state/state.h"

namespace berth::daemon {

// Returns all queues but the root, by path, without why they wait.
std::vector<QueueSummary> summaries_of(const state::State& state);

class QueueDesk {
 public:
  static constexpr std::int64_t kEveryMs = 15'000;
  static constexpr std::size_t kMostExplained = 20;  // leaves whose first pending job is explained in a round

  QueueDesk(Reader& reader, backend::Backend& backend, ServerClock& clock);
  ~QueueDesk();
  QueueDesk(const QueueDesk&) = delete;
  QueueDesk& operator=(const QueueDesk&) = delete;

 private:
  void run();
  std::vector<QueueSummary> look();

  Reader& reader_;
  backend::Backend& backend_;
  ServerClock& clock_;
  std::map<std::string, std::string> whys_;  // by path, as last explained
  std::string next_;                         // the leaf where the next round of explanations begins

  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace berth::daemon
