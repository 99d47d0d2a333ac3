#pragma once
// Keeps one kind of object known: lists it page by page, watches it from there on, and lists it again when the server
// has forgotten where the watch was (410). Objects are parsed one by one and given on. An object that is no JSON, or
// too large, is named and passed over.
//
// 1. A watch that ends is resumed from the last resource version seen; bookmarks keep that young.
// 2. A watch without a byte for `silence` is dead. If it never gave one, the kind is listed anew: a server that was
//    restored from a backup is silent about versions that it has not reached.
// 3. Failures are tried again after a time that doubles, with jitter from a seeded generator; a Retry-After is obeyed.
// 4. An optional kind that the server does not have (404) is an empty list, and is asked for again every few minutes; a
//    kind of an operator twice a minute, as that may be installed at any time. One of those that may not be read (403)
//    is absent, too; if it could be read before, when it has been denied for about a minute.

#include <boost/json/fwd.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "backend/kubernetes/http.h"
#include "base/random.h"
#include "kube/cluster.h"

namespace berth::backend {

struct WatchOptions {
  std::size_t page = 500;
  std::chrono::milliseconds silence{90'000};
  std::chrono::milliseconds list_timeout{60'000};
  std::chrono::milliseconds first_pause{250};
  std::chrono::milliseconds longest_pause{30'000};
  std::chrono::milliseconds absent_pause{300'000};
  std::chrono::milliseconds extra_pause{30'000};  // likewise of kinds that an operator may bring at any time
  std::int64_t watch_s = 300;                     // the server ends a watch after this time, up to twice as long
};

// What a watcher finds, on the thread of its Http.
class WatchReceiver {
 public:
  virtual ~WatchReceiver() = default;
  virtual void begin_list(kube::Kind kind) = 0;
  virtual void observe(kube::Kind kind, const boost::json::object& object, bool deleted) = 0;
  virtual void end_list(kube::Kind kind) = 0;
  // The kind may not be read. Its empty list was given before; it is asked for again.
  virtual void denied(kube::Kind /*kind*/) {}
  // "an object of /api/v1/pods was passed over: team/x is ...".
  virtual void passed_over(std::string what) = 0;
  // The kind is being watched, or a page of its list came.
  virtual void works(const kube::Resource& resource) = 0;
  // A list or watch failed. It is tried again, whatever the status.
  virtual void failed(const kube::Resource& resource, const HttpAnswer& answer) = 0;
};

class Watcher {
 public:
  Watcher(kube::Resource resource, WatchOptions options, Http& http, WatchReceiver& receiver, std::uint64_t seed);
  ~Watcher();
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  // Does what is due. To be called often, between the runs of the Http.
  void tick(Clock::time_point now);
  bool was_listed() const { return was_listed_; }
  Clock::time_point due_at() const { return phase_ == Phase::kWaiting ? due_at_ : Clock::time_point::max(); }

 private:
  enum class Phase { kWaiting, kListing, kWatching };
  struct Page;

  void list();
  void watch();
  void page_ended(const HttpAnswer& answer);
  void absent(bool denied);
  void watch_ended(const HttpAnswer& answer);
  void take_line(std::string_view text);
  void take_error(const boost::json::object& status);
  void take_item(std::string_view text);
  void try_again(const HttpAnswer& answer);
  void wait(std::chrono::milliseconds pause);
  void relist();

  const kube::Resource resource_;
  const WatchOptions options_;
  Http& http_;
  WatchReceiver& receiver_;
  Random random_;
  Phase phase_ = Phase::kWaiting;
  Clock::time_point due_at_{};
  std::uint64_t call_ = 0;
  std::unique_ptr<Page> page_;
  std::string continue_;  // of the list; empty: at its beginning
  std::string version_;   // resource version to watch from; empty: list first
  bool was_listed_ = false;
  bool could_be_read_ = false;
  bool expired_ = false;  // the watch said 410
  bool had_bytes_ = false;
  Clock::time_point heard_at_{};
  int failures_ = 0;  // in a row
  int relists_ = 0;   // in a row, without an object of a watch between
};

}  // namespace berth::backend
