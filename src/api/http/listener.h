#pragma once
// Where connections come in: a TCP address, or a Unix socket. Accepts on one I/O thread and gives every connection to
// its owner. (Asio is named here, never included.)

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"

namespace boost::asio {
class io_context;
}

namespace berth::http {

struct Accepted {
  int socket;
  int family;        // AF_INET, AF_INET6 or AF_UNIX
  std::string peer;  // "127.0.0.1:40112", "unix"
};

// Who may connect to a Unix socket: all users of the machine, or root and the server's own user.
enum class SocketFor { kAll, kServerUser };

class Listener {
 public:
  using Sink = std::function<void(Accepted)>;

  // Listens at once; accepts from begin() on. An error says which address could not be had and why.
  // `port` 0 takes a free one.
  static Result<std::unique_ptr<Listener>> on_tcp(boost::asio::io_context& io, const std::string& address,
                                                  std::uint16_t port);
  // Everybody who may enter its directory may connect. The directory has to belong to root or to this user, and nobody
  // else may write it, so that nobody can put another socket in its place. A socket that no server listens on is
  // replaced; anything else at the path is an error.
  static Result<std::unique_ptr<Listener>> on_socket(boost::asio::io_context& io, const std::string& path,
                                                     SocketFor whom);
  ~Listener();  // removes the socket from its directory
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  void begin(Sink sink);  // before the I/O thread runs
  void close();           // on the I/O thread

  std::uint16_t port() const;
  std::string authority() const;  // "127.0.0.1:8080"

 private:
  class Impl;
  explicit Listener(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Whether the address can be reached from this machine alone. kInvalid for anything that is no address.
Result<bool> is_loopback(const std::string& address);

// Returns true if a Unix socket can have this path: the kernel takes 107 bytes.
bool fits_socket_path(const std::string& path);

}  // namespace berth::http
