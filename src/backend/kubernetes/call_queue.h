#pragma once
// Which request goes to the API server next, and when. It reads no clock and sends nothing.
//
// 1. At most kMostInFlight requests are under way. Urgent ones go before all others; among equals the order is kept.
// 2. A token bucket limits the rate. The rate doubles each second in which it is used up, until the server says
//    429 for the first time; from then on it grows by a step each second. Each 429 halves it, at most once a second.
// 3. A 429 is obeyed: nothing is sent before its Retry-After is over, and the request goes again. Evictions are the
//    exception: there a 429 is the answer of a disruption budget, and is given to the caller. A 401 (the token has
//    expired) goes again, too.
// 4. After a request without an answer nothing is sent for a moment, which doubles each time until one is answered.
// 5. A request that waits already is not taken a second time. So what is asked for again and again, while the server is
//    away, does not pile up.
// 6. While it is held, nothing is sent: this server may not write (lease.h).

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>

#include "kube/cluster.h"

namespace berth::backend {

class CallQueue {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::size_t kMostInFlight = 32;
  static constexpr std::int64_t kFirstRate = 200;  // requests per second
  static constexpr std::int64_t kLeastRate = 10;
  static constexpr std::int64_t kMostRate = 2000;
  static constexpr std::int64_t kRateStep = 50;
  static constexpr std::int64_t kBurst = 400;

  explicit CallQueue(Time now) : filled_at_(now), grown_at_(now), not_before_(now) {}

  // Returns false if an equal request waits: this one will not be sent.
  bool push(kube::Request request);
  // Takes a request back. Returns false if it does not wait: it is under way, or was answered.
  bool withdraw(std::uint64_t id);
  // Returns the request to send now, or nothing.
  std::optional<kube::Request> next(Time now);
  // Takes what came of a request that `next` gave. Status 0: no answer. Returns true if it is the answer for the
  // caller; false if the request goes again.
  bool answered(std::uint64_t id, int status, std::optional<std::int64_t> retry_after_s, Time now);
  void hold(bool held) { held_ = held; }

  // Returns when `next` may give something, if nothing is answered before; nothing: not before an answer.
  std::optional<Time> ready_at() const;
  std::size_t in_flight() const { return in_flight_.size(); }
  std::size_t waiting() const { return urgent_.size() + others_.size(); }
  std::int64_t rate() const { return rate_; }
  std::uint64_t refused() const { return refused_; }  // answers 429 so far, those of evictions aside

 private:
  void fill(Time now);
  void halve(Time now);

  std::deque<kube::Request> urgent_;
  std::deque<kube::Request> others_;
  std::set<std::uint64_t> waiting_;  // hashes of what both of them have
  std::map<std::uint64_t, kube::Request> in_flight_;
  bool held_ = false;
  std::int64_t rate_ = kFirstRate;
  std::int64_t micro_tokens_ = kBurst * 1'000'000;
  Time filled_at_;
  Time grown_at_;
  Time halved_at_{};
  Time not_before_;
  std::int64_t used_since_grown_ = 0;
  bool was_refused_ = false;
  std::uint64_t refused_ = 0;
  int unanswered_ = 0;  // in a row
};

}  // namespace berth::backend
