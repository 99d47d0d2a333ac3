#include "daemon/log_check.h"

#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <utility>

#include "store/durable_log.h"

namespace berth::daemon {

namespace {

constexpr const char* kDamageNote = "damaged";
constexpr int kNiceness = 10;  // for this thread only: serving comes first

std::filesystem::path note_in(const std::string& data_dir) { return std::filesystem::path(data_dir) / kDamageNote; }

}  // namespace

LogCheck::LogCheck(std::string where, std::function<void(const Error&)> on_damage)
    : where_(std::move(where)), on_damage_(std::move(on_damage)) {}

LogCheck::~LogCheck() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
}

void LogCheck::start() {
  thread_ = std::thread([this] { run(); });
}

void LogCheck::run() {
  ::setpriority(PRIO_PROCESS, 0, kNiceness);  // on Linux 0 is the calling thread
  const auto checked = check();
  if (checked) {
    state_ = LogCheckState::kSound;
    return;
  }
  state_ = LogCheckState::kUnfinished;
  if (stopping_) return;
  if (checked.error().code == ErrorCode::kCorrupt) return on_damage_(checked.error());
  spdlog::warn("the event log could not be checked to its end: {}", checked.error().message);
}

Result<void> LogCheck::check() {
  const auto log = store::open_log_read_only(where_);
  if (!log) return log.error();
  const auto report = store::verify_chain(**log, [this](std::uint64_t checked, std::uint64_t) {
    checked_ = checked;
    return !stopping_;
  });
  if (!report) return report.error();
  return store::verify_history(**log, [this](std::uint64_t, std::uint64_t) { return !stopping_; });
}

void note_damage(const std::string& data_dir, const Error& damage) {
  std::ofstream(note_in(data_dir)) << damage.message << "\n";
}

Result<void> check_noted_damage(const std::string& data_dir, const std::string& where) {
  if (!std::filesystem::exists(note_in(data_dir))) return {};
  const auto log = store::open_log_read_only(where);
  if (!log) return log.error();
  const auto report = store::verify_chain(**log, {});
  if (!report) return report.error();
  if (auto sound = store::verify_history(**log, {}); !sound) return sound;
  std::filesystem::remove(note_in(data_dir));
  return {};
}

}  // namespace berth::daemon
