#include "store/disk.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <thread>

#include "base/check.h"
#include "base/random.h"

namespace berth::store {

namespace {

constexpr std::size_t kSector = 512;

constexpr std::pair<std::string_view, DiskAction> kActions[] = {
    {"eio", DiskAction::kEio},   {"full", DiskAction::kFull},   {"short", DiskAction::kShort},
    {"kill", DiskAction::kKill}, {"power", DiskAction::kPower}, {"torn", DiskAction::kTorn}};

std::optional<DiskAction> action_named(std::string_view name) {
  for (const auto& [known, action] : kActions) {
    if (known == name) return action;
  }
  return std::nullopt;
}

Error bad_fault(std::string_view text) {
  return invalid(
      fmt::format("\"{}\" is no disk fault: write it as write:N:eio|full|short|kill|power|torn or "
                  "fsync:N:eio|kill|power|torn, N from 1",
                  text));
}

}  // namespace

Result<DiskFault> parse_disk_fault(std::string_view text) {
  const std::size_t first = text.find(':');
  const std::size_t second = first == std::string_view::npos ? first : text.find(':', first + 1);
  if (second == std::string_view::npos) return bad_fault(text);
  DiskFault fault;
  const std::string_view operation = text.substr(0, first);
  if (operation != "write" && operation != "fsync") return bad_fault(text);
  fault.operation = operation == "write" ? DiskOperation::kWrite : DiskOperation::kFsync;
  const std::string_view nth = text.substr(first + 1, second - first - 1);
  const auto [end, error] = std::from_chars(nth.data(), nth.data() + nth.size(), fault.nth);
  if (error != std::errc() || end != nth.data() + nth.size() || fault.nth == 0) return bad_fault(text);
  const auto action = action_named(text.substr(second + 1));
  if (!action) return bad_fault(text);
  const bool needs_bytes = *action == DiskAction::kFull || *action == DiskAction::kShort;
  if (needs_bytes && fault.operation == DiskOperation::kFsync) return bad_fault(text);
  fault.action = *action;
  return fault;
}

Error io_error(const std::string& path, std::string_view doing, int error_number) {
  return {ErrorCode::kIo, fmt::format("{}: cannot {}: {}", path, doing, std::strerror(error_number))};
}

Disk::Disk(std::optional<DiskFault> fault, std::uint32_t fsync_delay_ms)
    : fault_(fault),
      fsync_delay_ms_(fsync_delay_ms),
      undoes_(fault && (fault->action == DiskAction::kPower || fault->action == DiskAction::kTorn)) {}

bool Disk::due(DiskOperation operation, std::uint64_t count) const {
  return fault_ && fault_->operation == operation && fault_->nth == count;
}

DiskStep Disk::next_write(const std::string& path) {
  if (failed()) return DiskStep::kFail;
  return due(DiskOperation::kWrite, ++writes_) ? inject(path) : DiskStep::kGo;
}

DiskStep Disk::next_sync(const std::string& path) {
  if (failed()) return DiskStep::kFail;
  if (fsync_delay_ms_ > 0) std::this_thread::sleep_for(std::chrono::milliseconds(fsync_delay_ms_));
  return due(DiskOperation::kFsync, ++syncs_) ? inject(path) : DiskStep::kGo;
}

DiskStep Disk::inject(const std::string& path) {
  switch (fault_->action) {
    case DiskAction::kEio:
      note_failure(path + ": injected input/output error");
      return DiskStep::kFail;
    case DiskAction::kFull:
      note_failure(path + ": injected: no space left on the device");
      return DiskStep::kFull;
    case DiskAction::kShort:
      note_failure(path + ": injected short write");
      return DiskStep::kHalfThenFail;
    case DiskAction::kKill:
    case DiskAction::kPower:
    case DiskAction::kTorn:
      return DiskStep::kHalfThenDie;
  }
  return DiskStep::kGo;
}

void Disk::note_failure(const std::string& what) {
  const std::lock_guard lock(mutex_);
  if (failure_.empty()) failure_ = what;
  failed_.store(true, std::memory_order_release);
}

Error Disk::failure() const {
  const std::lock_guard lock(mutex_);
  return {ErrorCode::kIo, failure_ + "; the log takes nothing more: end the process and start it again"};
}

void Disk::remember(const std::string& path, std::uint64_t offset, std::uint64_t size, std::string replaced) {
  const std::lock_guard lock(mutex_);
  unsynced_.push_back({path, offset, size, std::move(replaced)});
}

void Disk::forget(const std::string& path) {
  const std::lock_guard lock(mutex_);
  std::erase_if(unsynced_, [&](const Unsynced& write) { return write.path == path; });
}

// Undoes the unsynced writes, the last one first, so that the oldest bytes win where two overlap. A torn cut keeps the
// size of the file and decides sector by sector.
void Disk::cut_power() {
  Random random(fault_->nth);
  for (auto write = unsynced_.rbegin(); write != unsynced_.rend(); ++write) {
    const int file = ::open(write->path.c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0) continue;  // deleted meanwhile
    const bool torn = fault_->action == DiskAction::kTorn;
    for (std::size_t at = 0; at < write->replaced.size(); at += kSector) {
      if (torn && random.below(2) == 0) continue;
      const std::string_view sector = std::string_view(write->replaced).substr(at, kSector);
      BERTH_CHECK(::pwrite(file, sector.data(), sector.size(), static_cast<off_t>(write->offset + at)) ==
                  static_cast<ssize_t>(sector.size()));
    }
    if (!torn) BERTH_CHECK(::ftruncate(file, static_cast<off_t>(write->size)) == 0);
    ::close(file);
  }
}

void Disk::die() {
  const std::lock_guard lock(mutex_);
  if (undoes_) cut_power();
  ::kill(::getpid(), SIGKILL);
  std::abort();  // not reached: SIGKILL cannot be blocked
}

Result<void> Disk::write(int file, const std::string& path, std::uint64_t offset, std::string_view bytes) {
  if (undoes_) {
    struct stat status {};
    BERTH_CHECK(::fstat(file, &status) == 0);
    std::string replaced(bytes.size(), '\0');
    BERTH_CHECK(::pread(file, replaced.data(), replaced.size(), static_cast<off_t>(offset)) >= 0);
    remember(path, offset, static_cast<std::uint64_t>(status.st_size), std::move(replaced));
  }
  const DiskStep step = next_write(path);
  if (step == DiskStep::kFail || step == DiskStep::kFull) return failure();
  std::string_view rest = step == DiskStep::kGo ? bytes : bytes.substr(0, bytes.size() / 2);
  while (!rest.empty()) {
    const ssize_t written = ::pwrite(file, rest.data(), rest.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      note_failure(io_error(path, "write", written < 0 ? errno : ENOSPC).message);
      return failure();
    }
    rest.remove_prefix(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
  if (step == DiskStep::kHalfThenDie) die();
  if (step == DiskStep::kHalfThenFail) return failure();
  return {};
}

Result<void> Disk::sync(int file, const std::string& path) {
  const DiskStep step = next_sync(path);
  if (step == DiskStep::kHalfThenDie) die();
  if (step != DiskStep::kGo) return failure();
  if (::fsync(file) != 0) {
    note_failure(io_error(path, "sync", errno).message);
    return failure();
  }
  if (undoes_) forget(path);
  return {};
}

Result<void> Disk::rename(const std::string& from, const std::string& to) {
  if (failed()) return failure();
  if (std::rename(from.c_str(), to.c_str()) != 0) {
    note_failure(io_error(to, "rename to it", errno).message);
    return failure();
  }
  const std::lock_guard lock(mutex_);
  for (Unsynced& write : unsynced_) {
    if (write.path == from) write.path = to;
  }
  return {};
}

}  // namespace berth::store
