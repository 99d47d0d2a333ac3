#pragma once
// One client's connection and its life: head, body, handler, answer, and again. Everything here happens on the I/O
// thread of the connection's io_context, but handlers of reads, which run on the Site's threads; what is shared is in
// Site. (Asio is named here, never included.)

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "api/http/io_queue.h"
#include "api/http/listener.h"
#include "api/http/server.h"
#include "api/http/workers.h"

namespace boost::asio {
class io_context;
}

namespace berth::http {

using Clock = std::chrono::steady_clock;

// Eight hexadecimal digits at random, so that ids of requests differ from those before a restart.
std::string draw_id_prefix();

// What all connections of a server share: its tables, which do not change, and its counters.
struct Site {
  Site(ServerOptions chosen, Router table, Authenticator tokens)
      : options(std::move(chosen)),
        router(std::move(table)),
        authenticator(std::move(tokens)),
        id_prefix(draw_id_prefix()) {}

  // Runs the work at once for kIo, else on other threads.
  void run_on(Threads threads, const std::string& client, std::function<void()> work);
  void stop_workers();  // not from one of them
  void connection_closed();
  bool wait_until_empty(std::chrono::milliseconds at_most);

  const ServerOptions options;
  const Router router;
  const Authenticator authenticator;
  std::atomic<bool> stopping = false;
  std::atomic<std::uint64_t> accepted = 0;
  std::atomic<std::uint64_t> refused = 0;
  std::atomic<std::uint64_t> open = 0;
  std::atomic<std::uint64_t> unauthenticated_closed = 0;
  std::atomic<std::uint64_t> handshakes_failed = 0;
  std::atomic<std::uint64_t> requests = 0;
  std::atomic<std::uint64_t> streams = 0;
  std::atomic<std::uint64_t> streams_dropped = 0;
  std::atomic<std::uint64_t> timeouts = 0;
  const std::string id_prefix;  // of the ids of requests: drawn at the start
  std::atomic<std::uint64_t> ids = 0;
  Workers reads{2, 0};
  Workers long_reads{2, kLowPriority};
  Workers stream_steps{1, kLowPriority};
  Workers peers{1, 0};  // names of users may come from a directory service, which may be slow

 private:
  static constexpr int kLowPriority = 10;  // about a tenth of the time of others where all want the same core
  std::mutex mutex_;
  std::condition_variable emptied_;
};

class Connection {
 public:
  virtual ~Connection() = default;
  virtual void begin() = 0;
  virtual void begin_refused() = 0;              // answers 503, whatever is asked
  virtual void tick(Clock::time_point now) = 0;  // deadlines and heartbeats
  virtual void drain() = 0;                      // no further request; ends a stream
  virtual void kill() = 0;
  virtual bool closed() const = 0;
  virtual bool authenticated() const = 0;  // a request with a valid token was admitted
};

// Takes over the connected socket, unless it returns null. `posted` is the queue of the I/O thread.
std::shared_ptr<Connection> make_connection(std::shared_ptr<boost::asio::io_context> io,
                                            std::shared_ptr<IoQueue> posted, std::shared_ptr<Site> site,
                                            Accepted accepted);

}  // namespace berth::http
