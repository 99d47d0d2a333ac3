#include "daemon/retention.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <set>
#include <system_error>
#include <vector>

#include "backend/local/local_backend.h"
#include "executor/tree_walk.h"
#include "model/document/quantity.h"

namespace berth::daemon {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kLongestPauseS = 3600;
constexpr std::int64_t kPauseWithSizeS = 60;

std::optional<std::uint64_t> job_of(const fs::path& directory) {
  const std::string name = directory.filename().string();
  std::uint64_t job = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), job);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return job;
}

// Returns when the job finished, or nothing if it is live or unknown.
std::optional<Timestamp> finished_at(const store::Log& log, std::uint64_t job) {
  store::HistoryQuery query;
  query.job_id = job;
  query.limit = 1;
  const auto rows = log.history(query);
  if (!rows || rows->empty()) return std::nullopt;
  return rows->front().finished;
}

std::int64_t pause_of(const KeepFinished& keep) {
  const std::int64_t longest = keep.bytes ? kPauseWithSizeS : kLongestPauseS;
  return keep.seconds ? std::clamp<std::int64_t>(*keep.seconds / 10, 1, longest) : longest;
}

}  // namespace

std::string words_of(const KeepFinished& keep) {
  std::string words;
  if (keep.seconds)
    words = *keep.seconds == 0 ? "until the job's end" : document::duration_text(*keep.seconds) + " after a job's end";
  if (keep.bytes) words += (words.empty() ? "" : ", ") + document::memory_text(*keep.bytes >> 20U) + " in all";
  return words;
}

Leavings::Leavings(std::string data_dir, const store::Log& log, KeepFinished keep)
    : data_dir_(std::move(data_dir)), log_(log), keep_(keep) {}

void Leavings::look() {
  std::error_code failure;
  fs::directory_iterator entries(backend::jobs_dir(data_dir_), failure);
  for (const fs::directory_iterator end; !failure && entries != end; entries.increment(failure)) {
    const auto job = job_of(entries->path());
    if (!job || left_.contains(*job)) continue;
    const auto finished = finished_at(log_, *job);
    if (finished) left_[*job] = {*finished, keep_.bytes ? executor::bytes_below(entries->path()) : 0};
  }
}

// A directory that cannot be removed is forgotten; the next sweep finds it again.
bool Leavings::remove(std::uint64_t job) {
  left_.erase(job);
  const std::string directory = backend::job_dir(data_dir_, job);
  const auto removed = executor::remove_tree(directory);
  if (!removed) spdlog::warn("cannot remove {}: {}", directory, removed.error().message);
  return removed.has_value();
}

std::size_t Leavings::sweep(Timestamp now) {
  look();
  std::vector<std::pair<Timestamp, std::uint64_t>> oldest_first;
  std::int64_t bytes = 0;
  for (const auto& [job, left] : left_) {
    oldest_first.emplace_back(left.finished, job);
    bytes += left.bytes;
  }
  std::sort(oldest_first.begin(), oldest_first.end());
  std::size_t removed = 0;
  for (const auto& [finished, job] : oldest_first) {
    const bool too_old = keep_.seconds && now - finished >= *keep_.seconds * 1000;
    const bool too_much = keep_.bytes && bytes > *keep_.bytes;
    if (!too_old && !too_much) break;
    bytes -= left_[job].bytes;
    if (remove(job)) ++removed;
  }
  return removed;
}

Retention::Retention(std::string data_dir, const store::Log& log, KeepFinished keep, ServerClock& clock)
    : leavings_(std::move(data_dir), log, keep), clock_(clock), pause_s_(pause_of(keep)), thread_([this] { run(); }) {}

Retention::~Retention() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stopped_.notify_one();
  thread_.join();
}

void Retention::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    lock.unlock();
    const std::size_t removed = leavings_.sweep(clock_.now());
    if (removed > 0) spdlog::info("removed the output and checkpoints of {} finished jobs", removed);
    lock.lock();
    stopped_.wait_for(lock, std::chrono::seconds(pause_s_), [this] { return stopping_; });
  }
}

}  // namespace berth::daemon
