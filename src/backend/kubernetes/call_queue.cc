#include "backend/kubernetes/call_queue.h"

#include <algorithm>
#include <utility>

#include "base/hash.h"

namespace berth::backend {
namespace {

constexpr std::int64_t kToken = 1'000'000;
constexpr std::chrono::seconds kSecond{1};
constexpr std::chrono::milliseconds kFirstPause{100};
constexpr int kMostDoublings = 6;  // 6.4 s

std::uint64_t hash_of(const kube::Request& request) {
  return Hasher().add(static_cast<std::uint64_t>(request.method)).add(request.path).add(request.body).digest();
}

bool is_eviction(const kube::Request& request) { return request.path.ends_with("/eviction"); }

}  // namespace

bool CallQueue::push(kube::Request request) {
  if (!waiting_.insert(hash_of(request)).second) return false;
  (request.urgent ? urgent_ : others_).push_back(std::move(request));
  return true;
}

bool CallQueue::withdraw(std::uint64_t id) {
  for (std::deque<kube::Request>* from : {&urgent_, &others_}) {
    const auto found = std::find_if(from->begin(), from->end(), [id](const auto& one) { return one.id == id; });
    if (found == from->end()) continue;
    waiting_.erase(hash_of(*found));
    from->erase(found);
    return true;
  }
  return false;
}

std::optional<kube::Request> CallQueue::next(Time now) {
  fill(now);
  std::deque<kube::Request>& from = urgent_.empty() ? others_ : urgent_;
  if (held_ || from.empty() || now < not_before_ || in_flight_.size() >= kMostInFlight || micro_tokens_ < kToken)
    return std::nullopt;
  micro_tokens_ -= kToken;
  ++used_since_grown_;
  kube::Request request = std::move(from.front());
  from.pop_front();
  waiting_.erase(hash_of(request));
  in_flight_.emplace(request.id, request);
  return request;
}

bool CallQueue::answered(std::uint64_t id, int status, std::optional<std::int64_t> retry_after_s, Time now) {
  const auto found = in_flight_.find(id);
  if (found == in_flight_.end()) return false;
  kube::Request request = std::move(found->second);
  in_flight_.erase(found);
  if (status == 0) {
    const int doublings = std::min(unanswered_++, kMostDoublings);
    not_before_ = std::max(not_before_, now + kFirstPause * (1 << doublings));
    return true;
  }
  unanswered_ = 0;
  const bool must_wait = status == 429 && !is_eviction(request);
  if (!must_wait && status != 401) return true;
  if (must_wait) {
    ++refused_;
    halve(now);
  }
  not_before_ = std::max(not_before_, now + std::chrono::seconds(retry_after_s.value_or(1)));
  waiting_.insert(hash_of(request));
  (request.urgent ? urgent_ : others_).push_front(std::move(request));
  return false;
}

void CallQueue::fill(Time now) {
  if (now - grown_at_ >= kSecond) {
    const bool used_up = used_since_grown_ * 2 >= rate_;
    if (used_up) rate_ = std::min(kMostRate, was_refused_ ? rate_ + kRateStep : rate_ * 2);
    grown_at_ = now;
    used_since_grown_ = 0;
  }
  const std::int64_t elapsed_us = std::chrono::duration_cast<std::chrono::microseconds>(now - filled_at_).count();
  if (elapsed_us <= 0) return;
  const std::int64_t most = kBurst * kToken;
  micro_tokens_ = std::min(most, micro_tokens_ + std::min<std::int64_t>(elapsed_us, 60 * kToken) * rate_);
  filled_at_ = now;
}

void CallQueue::halve(Time now) {
  if (was_refused_ && now - halved_at_ < kSecond) return;
  was_refused_ = true;
  halved_at_ = now;
  rate_ = std::max(kLeastRate, rate_ / 2);
  micro_tokens_ = std::min(micro_tokens_, rate_ * kToken);
  grown_at_ = now;
  used_since_grown_ = 0;
}

std::optional<CallQueue::Time> CallQueue::ready_at() const {
  if (held_ || waiting() == 0 || in_flight_.size() >= kMostInFlight) return std::nullopt;
  Time ready = std::max(not_before_, filled_at_);
  if (micro_tokens_ < kToken) {
    const auto lacks_us = (kToken - micro_tokens_) / rate_ + 1;
    ready = std::max(ready, filled_at_ + std::chrono::microseconds(lacks_us));
  }
  return ready;
}

}  // namespace berth::backend
