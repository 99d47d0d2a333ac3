#pragma once
// The Lease of coordination.k8s.io that keeps a second server from writing to the same cluster. This is its protocol
// alone: it says what to send and is told the answers; it reads no clock and sends nothing.
//
// 1. The holder is the data directory (`identity`), not the process. So a server that starts again on its directory
//    takes its lease back at once; the lock of the directory keeps two of them apart.
// 2. A lease of another holder that is renewed is respected: that is an error at the start, and the end of this server
//    later on. One that is not renewed for its duration, by this server's own clock, is taken over. Clocks of two
//    machines are never compared.
// 3. A server that stops gives the lease back, so that the next one need not wait.
// 4. It may write while its last renewal is younger than kWritesFor. Requests under way time out (4 s) before another
//    server may take the lease over.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "backend/kubernetes/http.h"
#include "base/result.h"
#include "base/timestamp.h"

namespace berth::backend {

class Lease {
 public:
  static constexpr std::chrono::seconds kDuration{15};
  static constexpr std::chrono::seconds kWritesFor{10};
  static constexpr std::chrono::seconds kRenewEvery{4};
  static constexpr std::chrono::seconds kLookEvery{1};  // while another holds it

  // `space` and `name` are those of the object.
  Lease(std::string space, std::string name, std::string identity);

  // Returns the call to make now, or nothing. While one is under way there is no other. `wall` is written into the
  // object, for people to read.
  std::optional<HttpCall> next(Clock::time_point now, Timestamp wall);
  // Takes the answer to that call; `sent` is when it was given out.
  void answered(const HttpAnswer& answer, Clock::time_point now);

  // Returns the call that gives the lease back, if it is held. Its answer changes nothing; this is the last call.
  std::optional<HttpCall> give_back(Timestamp wall);

  bool held() const { return held_; }
  bool may_write(Clock::time_point now) const { return held_ && now < renewed_at_ + kWritesFor; }
  // Another server has it. Nothing can be done about that.
  const std::optional<Error>& lost() const { return lost_; }
  // What the last refused call said, in words; empty: it was not refused.
  const std::string& failure() const { return failure_; }
  Clock::time_point due_at() const;

 private:
  struct Seen {  // as the server has it
    std::string holder;
    std::string version;
    std::int64_t duration_s = 0;
    std::int64_t transitions = 0;
  };

  std::string object(const std::string& holder, std::int64_t transitions, Timestamp wall) const;
  void looked(const HttpAnswer& answer, Clock::time_point now);
  void wrote(const HttpAnswer& answer);
  void meet_other(const Seen& seen, Clock::time_point now);

  enum class Step { kLook, kWrite };

  const std::string space_;
  const std::string name_;
  const std::string identity_;
  Step step_ = Step::kLook;
  bool under_way_ = false;
  bool exists_ = false;
  Seen seen_;
  Clock::time_point seen_since_{};  // since when the other's lease has had this version
  Clock::time_point due_at_{};
  Clock::time_point sent_at_{};
  Clock::time_point renewed_at_{};
  bool held_ = false;
  std::optional<Error> lost_;
  std::string failure_;
};

}  // namespace berth::backend
