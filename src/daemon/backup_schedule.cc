#include "daemon/backup_schedule.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "executor/tree_walk.h"
#include "store/data_directory.h"
#include "store/hash_chain.h"
#include "store/sqlite_log.h"

namespace berth::daemon {

namespace {

constexpr const char* kBackupPrefix = "backup-";
constexpr std::int64_t kRetryMs = 600'000;
constexpr int kBackupNiceness = 10;  // for this thread only: serving comes first
constexpr std::chrono::milliseconds kBetweenLooksAtClock{200};

// "backup-20261121T081530250Z"
std::string shelf_name(Timestamp now) {
  std::string time = to_iso8601(now);
  std::erase_if(time, [](char c) { return c == '-' || c == ':' || c == '.'; });
  return kBackupPrefix + time;
}

bool is_shelf_name(const std::string& name) {
  static const std::size_t kLength = shelf_name({}).size();
  return name.size() == kLength && name.starts_with(kBackupPrefix) && name.back() == 'Z';
}

}  // namespace

// What cannot be read is told by the next backup that fails.
std::vector<std::string> BackupShelf::all_names() const {
  auto names = store::names_in(flags_.to);
  return names ? std::move(*names) : std::vector<std::string>();
}

std::vector<std::string> BackupShelf::names() const {
  std::vector<std::string> names = all_names();
  std::error_code failure;
  std::erase_if(names, [&](const std::string& name) {
    return !is_shelf_name(name) || !std::filesystem::exists(flags_.to + "/" + name + "/" + kManifestFile, failure);
  });
  return names;
}

void BackupShelf::remove_unfinished() const {
  for (const std::string& name : all_names()) {
    const std::size_t at = name.find(".unfinished-");
    if (at == std::string::npos || !is_shelf_name(name.substr(0, at))) continue;
    if (auto removed = executor::remove_tree(flags_.to + "/" + name); !removed)
      spdlog::warn("{}", removed.error().message);
  }
}

std::optional<Timestamp> BackupShelf::newest(Timestamp now) const {
  const std::vector<std::string> all = names();
  for (auto name = all.rbegin(); name != all.rend(); ++name) {
    const auto manifest = manifest_of(flags_.to + "/" + *name);
    if (manifest && manifest->made <= now) return manifest->made;
  }
  return std::nullopt;
}

// Returns true if the log of the older backup is the beginning of that of the newer one, so that nothing goes with it.
bool BackupShelf::is_contained(const std::string& older, const Backup& newer) const {
  const auto manifest = manifest_of(flags_.to + "/" + older);
  if (!manifest || manifest->seq > newer.manifest.seq) return false;
  if (manifest->seq == 0) return true;
  const auto log = store::SqliteLog::open_read_only(newer.path);
  if (!log) return false;
  const auto hash = (*log)->hash_at(manifest->seq);
  return hash && store::to_hex(*hash) == manifest->chain_hash;
}

void BackupShelf::remove_old(Backup& made) const {
  std::vector<std::string> older = names();
  std::erase(older, std::filesystem::path(made.path).filename().string());
  const auto ours = std::stable_partition(older.begin(), older.end(),
                                          [&](const std::string& name) { return !is_contained(name, made); });
  if (ours != older.begin())
    made.warnings.push_back(
        fmt::format("{} of the backups in {} are not of what the log is now, so they are never "
                    "removed: another log, or events that a restore has forgotten",
                    ours - older.begin(), flags_.to));
  older.erase(older.begin(), ours);
  while (older.size() >= flags_.keep) {
    const std::string oldest = flags_.to + "/" + older.front();
    older.erase(older.begin());
    if (auto removed = executor::remove_tree(oldest); !removed)
      made.warnings.push_back("the old backup " + oldest + " cannot be removed: " + removed.error().message);
  }
}

Result<Backup> BackupShelf::add(Timestamp now, const std::function<bool()>& go_on) const {
  remove_unfinished();
  auto made = make_backup(data_dir_, flags_.to + "/" + shelf_name(now), now, go_on);
  if (made) remove_old(*made);
  return made;
}

BackupSchedule::BackupSchedule(std::string data_dir, BackupFlags flags, ServerClock& clock)
    : shelf_(std::move(data_dir), flags), flags_(std::move(flags)), clock_(clock) {}

BackupSchedule::~BackupSchedule() { stop(); }

void BackupSchedule::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stopped_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void BackupSchedule::start() {
  thread_ = std::thread([this] { run(); });
}

BackupSchedule::Status BackupSchedule::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

void BackupSchedule::run() {
  ::setpriority(PRIO_PROCESS, 0, kBackupNiceness);  // on Linux 0 is the calling thread
  const auto newest = shelf_.newest(clock_.now());
  Timestamp due = newest ? *newest + flags_.every_s * 1000 : Timestamp{};
  std::unique_lock lock(mutex_);
  status_.last = newest;
  while (!stopping_) {
    if (clock_.now() >= due) {
      lock.unlock();
      due = make_one();
      lock.lock();
    }
    stopped_.wait_for(lock, kBetweenLooksAtClock, [this] { return stopping_.load(); });
  }
}

Timestamp BackupSchedule::make_one() {
  const Timestamp now = clock_.now();
  const auto made = shelf_.add(now, [this] { return !stopping_; });
  const std::lock_guard lock(mutex_);
  if (made) {
    status_.last = now;
    status_.warning = made->warnings.empty() ? "" : "backup " + made->path + ": " + made->warnings.front();
    spdlog::info("backup {}: events to {}, sound", made->path, made->manifest.seq);
    return now + flags_.every_s * 1000;
  }
  if (stopping_) return now;
  ++status_.failures;
  const std::string last = status_.last ? "the last good one is of " + to_iso8601(*status_.last) : "there is none yet";
  status_.warning = fmt::format("the backup to {} failed: {}; {}", flags_.to, made.error().message, last);
  spdlog::warn("{}", status_.warning);
  return now + std::min(kRetryMs, flags_.every_s * 1000);
}

}  // namespace berth::daemon
