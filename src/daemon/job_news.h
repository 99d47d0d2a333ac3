#pragma once
// Tells a backend that submits jobs itself what becomes of them (backend.h, sentence 7): accepted or refused by the
// answer to its SubmitJob, finished by the durable event, and why they wait by asking the reader now and then.

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "daemon/inbox.h"
#include "daemon/reader.h"
#include "daemon/server_clock.h"
#include "store/log.h"

namespace berth::daemon {

class JobNewsDesk {
 public:
  static constexpr std::int64_t kWaitsAfterMs = 10'000;  // a job that pends for less is not explained
  static constexpr std::size_t kMostPerSecond = 20;      // explanations
  static constexpr std::int64_t kSameReasonMs = 60'000;  // between two explanations with the same reason code

  JobNewsDesk(Reader& reader, const store::Log& log, backend::Backend& backend, ServerClock& clock);
  ~JobNewsDesk();
  JobNewsDesk(const JobNewsDesk&) = delete;
  JobNewsDesk& operator=(const JobNewsDesk&) = delete;

  // Returns the answer to give with the backend's SubmitJob of this key.
  Answer answer_for(std::string key);

 private:
  struct Told {
    ReasonCode code = ReasonCode::kNone;
    std::string text;
    Timestamp at;  // 0: never
  };

  void accepted(const std::string& key, const control::Reply& reply);
  void finished(const JobFinished& event);
  void run();
  void explain_some();
  void tell(std::vector<std::pair<JobId, Told>>& told, const std::vector<JobId>& gone);
  bool was_cancelled(JobId id) const;

  Reader& reader_;
  const store::Log& log_;
  backend::Backend& backend_;
  ServerClock& clock_;
  std::uint64_t watch_ = 0;

  std::mutex mutex_;  // never held while the reader is asked
  std::condition_variable stopped_;
  bool stopping_ = false;
  std::map<JobId, Told> jobs_;  // of the backend, live
  JobId next_;                  // where the next round of explanations begins
  std::thread thread_;
};

}  // namespace berth::daemon
