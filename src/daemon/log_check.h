#pragma once
// The check of the whole event log behind a start. A start serves from the newest checkpoint and the records after it.
// This checks the records before it, from the first one on, while the server serves, with its own thread and read
// connection. Damage is reported by a callback (docs/decisions/0009).

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

#include "base/fields.h"
#include "base/result.h"

namespace berth::daemon {

enum class LogCheckState { kRunning, kSound, kUnfinished };

class LogCheck {
 public:
  // `where` is a data directory or postgresql://... `on_damage` is called by the thread of the check, at most once.
  LogCheck(std::string where, std::function<void(const Error&)> on_damage);
  ~LogCheck();  // ends the check, finished or not
  LogCheck(const LogCheck&) = delete;
  LogCheck& operator=(const LogCheck&) = delete;

  void start();
  LogCheckState state() const { return state_; }
  std::uint64_t checked() const { return checked_; }  // number of records checked so far

 private:
  void run();
  Result<void> check();

  const std::string where_;
  const std::function<void(const Error&)> on_damage_;
  std::atomic<LogCheckState> state_{LogCheckState::kRunning};
  std::atomic<std::uint64_t> checked_{0};
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

// note_damage notes damage in the data directory. The next start then checks everything before it serves, by
// check_noted_damage of the log that is `where`. It is refused while the damage is there, and is normal again once the
// log was restored.
void note_damage(const std::string& data_dir, const Error& damage);
Result<void> check_noted_damage(const std::string& data_dir, const std::string& where);

}  // namespace berth::daemon

namespace berth {
BERTH_ENUM_NAMES(daemon::LogCheckState, "running", "sound", "unfinished");
}  // namespace berth
