#pragma once
// The check of the whole event log behind a start. A start serves from the newest checkpoint and the records after it;
// what lies before the checkpoint is checked here, from the first record on, by a thread and a read connection of its
// own while the server serves. Damage is told to whoever made the check (docs/decisions/0009).

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
  // `on_damage` is called by the check's thread, at most once.
  LogCheck(std::string data_dir, std::function<void(const Error&)> on_damage);
  ~LogCheck();  // gives up what is left
  LogCheck(const LogCheck&) = delete;
  LogCheck& operator=(const LogCheck&) = delete;

  void start();
  LogCheckState state() const { return state_; }
  std::uint64_t checked() const { return checked_; }  // records, so far

 private:
  void run();
  Result<void> check();

  const std::string data_dir_;
  const std::function<void(const Error&)> on_damage_;
  std::atomic<LogCheckState> state_{LogCheckState::kRunning};
  std::atomic<std::uint64_t> checked_{0};
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

// Damage that was found is noted in the data directory, so that the next start checks everything before it serves: it
// is refused at once as long as the damage is there, and goes on as ever once the log was restored.
void note_damage(const std::string& data_dir, const Error& damage);
Result<void> check_noted_damage(const std::string& data_dir);

}  // namespace berth::daemon

namespace berth {
BERTH_ENUM_NAMES(daemon::LogCheckState, "running", "sound", "unfinished");
}  // namespace berth
