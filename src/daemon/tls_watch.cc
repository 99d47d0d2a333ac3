#include "daemon/tls_watch.h"

#include <spdlog/spdlog.h>

#include <chrono>

#include "base/timestamp.h"

namespace berth::daemon {
namespace {

constexpr std::chrono::seconds kLookEvery{1};
constexpr std::int64_t kWarnBeforeMs = std::int64_t{7} * 86'400'000;

std::int64_t wall_ms() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

}  // namespace

TlsWatch::TlsWatch(http::TlsCredentials& credentials) : credentials_(credentials) {
  spdlog::info("TLS by {}", credentials_.describe());
  thread_ = std::thread([this] { run(); });
}

TlsWatch::~TlsWatch() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stopped_.notify_all();
  thread_.join();
}

void TlsWatch::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    lock.unlock();
    look();
    lock.lock();
    stopped_.wait_for(lock, kLookEvery, [this] { return stopping_; });
  }
}

void TlsWatch::look() {
  const auto changed = credentials_.reload();
  if (!changed) {
    spdlog::error("TLS: {}. {} stays in force", changed.error().message, credentials_.describe());
  } else if (*changed) {
    spdlog::info("TLS: from now on by {}", credentials_.describe());
    warned_ = false;
  }
  if (!warned_ && credentials_.ends().ms < wall_ms() + kWarnBeforeMs) {
    spdlog::warn("TLS: {} ends soon or has ended; put a new certificate in its place", credentials_.describe());
    warned_ = true;
  }
}

}  // namespace berth::daemon
