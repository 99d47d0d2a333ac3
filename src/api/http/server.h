#pragma once
// The HTTP/1.1 server: a few I/O threads, each with its own connections, around a table of routes. It decides nothing.
// Rules:
//   1. Nothing blocks an I/O thread. Handlers of reads, and the steps of streams that catch up, run on threads beside
//      them (router.h, Threads). All handlers answer through a Responder, at once or later.
//   2. Every resource that a client can hold is bounded: connections, streams, heads, bodies, unsent bytes, and the
//   time
//      for each of them. What is over a limit gets its status (414, 431, 413, 408, 503) and the connection is closed.
//   3. What RFC 9112 allows to be read in two ways is refused (screen.h), so no request can be smuggled.
//   4. One request of a connection is handled at a time; pipelined ones wait in the socket.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "api/http/authenticator.h"
#include "api/http/gate.h"
#include "api/http/peer.h"
#include "api/http/router.h"
#include "api/http/tls_credentials.h"
#include "base/result.h"

namespace berth::http {

struct Limits {
  std::size_t request_line_bytes = 8 * 1024;
  std::size_t head_bytes = 32 * 1024;
  std::size_t header_count = 100;
  std::size_t body_bytes = 1024 * 1024;
  std::size_t connections = 2048;
  // Of these, connections on which no request with a valid token was admitted yet. The oldest is closed when a new
  // connection would be one too many, here or of all connections; so idle connections without a token lock nobody out.
  std::size_t unauthenticated = 512;
  std::size_t streams = 1536;  // fewer than connections, so that watchers never lock out the others
  std::size_t stream_pending_bytes = 256 * 1024;
};

struct Timeouts {
  std::chrono::milliseconds handshake{10'000};  // for the whole of TLS's
  std::chrono::milliseconds idle{60'000};       // between two requests
  std::chrono::milliseconds head{10'000};       // from the first byte of a head to its last
  std::chrono::milliseconds body{30'000};       // for the whole body
  std::chrono::milliseconds handler{30'000};    // until a handler's answer; then 503 with Retry-After
  std::chrono::milliseconds write{30'000};      // for one write to make progress
  std::chrono::milliseconds heartbeat{15'000};
};

struct ServerOptions {
  std::string address = "127.0.0.1";         // an IP address; anything but loopback is for the operator to say
  std::uint16_t port = 0;                    // 0 asks the system for a free one
  std::shared_ptr<TlsCredentials> tls = {};  // of the address; null: plain HTTP
  std::string socket_path = {};              // of a Unix socket to serve on as well; empty: none
  bool socket_for_all = true;                // all users may connect to it; else root and the server's user
  // Who is at the other end of a connection by the Unix socket. May wait; called on a thread of its own.
  std::function<Peer(int socket)> peer_of_socket = {};
  std::size_t io_threads = 2;
  Limits limits;
  Timeouts timeouts;
  Gate gate = {};  // what watches over requests
  // Told what a handler threw, or which header of its answer cannot be sent; the client only hears of a 500.
  std::function<void(const std::string&)> on_fault = {};
};

struct ServerCounters {
  std::uint64_t connections_accepted = 0;
  std::uint64_t connections_refused = 0;  // over the limit
  std::uint64_t connections_open = 0;
  std::uint64_t unauthenticated_closed = 0;  // to make room
  std::uint64_t handshakes_failed = 0;
  std::uint64_t requests = 0;
  std::uint64_t streams_open = 0;
  std::uint64_t streams_dropped = 0;  // the reader was too slow
  std::uint64_t timeouts = 0;
};

class Server {
 public:
  // Binds, listens and starts the threads. kIo says which address could not be had and why.
  static Result<std::unique_ptr<Server>> start(ServerOptions options, Router router, Authenticator authenticator);
  ~Server();  // stop(0)
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::uint16_t port() const;
  std::string url() const;  // "http://127.0.0.1:8080", with TLS "https://..."
  ServerCounters counters() const;

  // Stops accepting, ends the streams, lets requests in flight finish for at most `grace`, closes everything and joins
  // the threads. Not from an I/O thread. Responders and Streams that are still held stay harmless.
  void stop(std::chrono::milliseconds grace);

 private:
  class Core;
  explicit Server(std::unique_ptr<Core> core);
  std::unique_ptr<Core> core_;
};

}  // namespace berth::http
