#include "daemon/gatekeeper.h"

namespace berth::daemon {

http::Gate Gatekeeper::gate() {
  return {.take = [this](const std::string& subject, const std::string& address) { return take(subject, address); }};
}

std::int64_t Gatekeeper::take(const std::string& subject, const std::string& address) {
  const Timestamp now = clock_.now();
  const std::lock_guard lock(mutex_);
  return subject.empty() ? addresses_.take(address, now) : subjects_.take(subject, now);
}

}  // namespace berth::daemon
