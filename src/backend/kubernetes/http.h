#pragma once
// HTTP to one API server: many calls at once on one thread, through libcurl. TLS is verified, connections are kept and
// used again, and a token that lies in a file is read again as it changes. All methods but `wake` belong to one thread,
// on which the callbacks run too.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "backend/kubernetes/credentials.h"
#include "base/result.h"

namespace berth::backend {

using Clock = std::chrono::steady_clock;

struct HttpAnswer {
  int status = 0;    // 0: no answer came
  std::string body;  // at most kMostBodyBytes of it; empty where it went to on_bytes
  std::optional<std::int64_t> retry_after_s;
  std::string failure;   // status 0: why, in words
  bool refused = false;  // status 0: for a reason that waiting does not change, such as a certificate

  bool ok() const { return status >= 200 && status < 300; }
};

inline constexpr std::size_t kMostBodyBytes = 8 << 20;

struct HttpCall {
  std::string_view method = "GET";
  std::string path;  // begins with '/'; has the query
  std::string content_type = {};
  std::string body = {};
  std::chrono::milliseconds timeout{4000};  // of the whole call; 0: none
  // A successful answer has begun. What it may do is what on_bytes may: begin and cancel no calls.
  std::function<void()> on_open = {};
  // Takes the body of a successful answer while it comes. Empty: the body is collected. An answer with another status
  // is always collected.
  std::function<void(std::string_view)> on_bytes = {};
  std::function<void(const HttpAnswer&)> done = {};  // once, unless the call is cancelled
};

class Http {
 public:
  explicit Http(Credentials credentials);
  ~Http();
  Http(const Http&) = delete;
  Http& operator=(const Http&) = delete;

  const Credentials& credentials() const { return credentials_; }

  // Begins a call and returns its number, from 1 on.
  std::uint64_t send(HttpCall call);
  // Ends a call without `done`. An unknown number changes nothing.
  void cancel(std::uint64_t id);

  // Lets calls go on, and waits for bytes at most until `until`, or until wake(). Calls back.
  void run(Clock::time_point until);
  // Ends the waiting of `run`; any thread may call it.
  void wake();

 private:
  struct Transfers;
  Credentials credentials_;
  std::unique_ptr<Transfers> transfers_;
};

// Returns the `message` of a Status object, as an API server sends it with an error; or "status 500".
std::string message_of(const HttpAnswer& answer);

}  // namespace berth::backend
