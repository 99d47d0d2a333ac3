#include "api/http/listener.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

#include "base/socket_table.h"

namespace berth::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::chrono::milliseconds kAcceptPause{100};  // when descriptors have run out
constexpr std::size_t kAcceptsAtOnce = 32;              // then the connections get a turn

std::string text_of(const tcp::endpoint& endpoint) {
  const std::string address = endpoint.address().to_string();
  return (endpoint.address().is_v6() ? "[" + address + "]" : address) + ":" + std::to_string(endpoint.port());
}

Error cannot_listen(const std::string& where, std::string_view doing, int reason = errno) {
  return {ErrorCode::kIo, "cannot listen on " + where + ": " + std::string(doing) + ": " + std::strerror(reason)};
}

SocketAddress bytes_of(const asio::ip::address& address) {
  return address.is_v4() ? mapped_address(address.to_v4().to_bytes()) : address.to_v6().to_bytes();
}

// Returns who listens where this server wants to: " (uid 50003 listens there ...". Two that overlap: one may be on all
// addresses.
std::string holder_of(const tcp::endpoint& wanted) {
  const SocketAddress address = bytes_of(wanted.address());
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream file(table, std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    for (const SocketRow& row : parse_socket_table(text)) {
      const bool overlaps = is_reached_by(row.local, address) || is_reached_by(address, row.local);
      if (!row.listens || row.local_port != wanted.port() || !overlaps) continue;
      const std::string who = "a process of uid " + std::to_string(row.uid) + " listens there";
      if (row.uid == 0 || row.uid == ::geteuid()) return who + "; choose another port, or 0 for a free one";
      return who + ", which is not this server's user: a job may have taken the port. End it, or choose another port";
    }
  }
  return "another server has this port; choose another, or 0 for a free one";
}

// By hand, because Asio makes sockets that leak into every child process.
Result<int> listen_on(const tcp::endpoint& endpoint) {
  const int socket = ::socket(endpoint.protocol().family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket < 0) {
    const int reason = errno;  // a later call, as that of an address's text, sets it anew
    return cannot_listen(text_of(endpoint), "socket", reason);
  }
  const int yes = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  const bool bound = ::bind(socket, endpoint.data(), static_cast<socklen_t>(endpoint.size())) == 0;
  if (bound && ::listen(socket, SOMAXCONN) == 0) return socket;
  const int reason = errno;
  Error error = cannot_listen(text_of(endpoint), bound ? "listen" : "bind", reason);
  if (reason == EADDRINUSE) error.message += " (" + holder_of(endpoint) + ")";
  ::close(socket);
  return error;
}

Result<asio::ip::address> parse_address(const std::string& text) {
  error_code ec;
  const auto address = asio::ip::make_address(text, ec);
  if (ec) return invalid("\"" + text + "\" is not an IP address to listen on, as 127.0.0.1 or ::1 would be");
  return address;
}

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(static_cast<char*>(address.sun_path), path.c_str(), path.size() + 1);
  return address;
}

bool is_listened_on(const std::string& path) {
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const sockaddr_un address = address_of(path);
  const bool connected = ::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  const bool listened_on = connected || errno == EAGAIN;
  ::close(socket);
  return listened_on;
}

Result<void> check_directory(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string directory = slash == 0 ? "/" : path.substr(0, slash);
  struct stat status {};
  if (::stat(directory.c_str(), &status) != 0) return cannot_listen(path, directory);
  if (status.st_uid != 0 && status.st_uid != ::geteuid()) {
    return Error{ErrorCode::kInvalid, "cannot listen on " + path + ": " + directory +
                                          " belongs to another user, who could put a socket of his own there; name a "
                                          "directory of root or of the server's user"};
  }
  if ((status.st_mode & 022U) != 0) {
    return Error{ErrorCode::kInvalid, "cannot listen on " + path + ": others may write in " + directory +
                                          " and could put a socket of their own there; chmod go-w it, or name another"};
  }
  return {};
}

Result<void> check_path(const std::string& path) {
  if (path.empty() || path.front() != '/' || path.back() == '/')
    return invalid("\"" + path + "\" is not the absolute path of a socket, as /run/berth/berth.sock would be");
  if (!fits_socket_path(path))
    return invalid("the path of a socket has at most 107 bytes, and " + path + " has " + std::to_string(path.size()));
  if (auto ok = check_directory(path); !ok) return ok;
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return errno == ENOENT ? Result<void>() : cannot_listen(path, "stat");
  if (!S_ISSOCK(status.st_mode))
    return Error{ErrorCode::kConflict, "cannot listen on " + path + ": there is something that is no socket"};
  if (is_listened_on(path)) return Error{ErrorCode::kConflict, "cannot listen on " + path + ": another server does"};
  return {};
}

// Made under another name and renamed, so that it is never there with another mode, or without a listener.
Result<int> listen_on_path(const std::string& path, mode_t mode) {
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket < 0) return cannot_listen(path, "socket");
  const std::string draft = path + "~";
  const sockaddr_un address = address_of(draft);
  ::unlink(draft.c_str());
  const char* doing = "bind";
  if (::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    doing = "listen";
    if (::listen(socket, SOMAXCONN) == 0 && ::chmod(draft.c_str(), mode) == 0 &&
        ::rename(draft.c_str(), path.c_str()) == 0)
      return socket;
  }
  Error error = cannot_listen(path, doing);
  ::unlink(draft.c_str());
  ::close(socket);
  return error;
}

}  // namespace

class Listener::Impl {
 public:
  Impl(asio::io_context& io, int socket, tcp::endpoint local)
      : socket_(io, socket), pause_(io), local_(std::move(local)) {}
  Impl(asio::io_context& io, int socket, std::string path) : socket_(io, socket), pause_(io), path_(std::move(path)) {
    struct stat status {};
    if (::lstat(path_.c_str(), &status) == 0) inode_ = status.st_ino;
  }
  ~Impl() {
    struct stat status {};
    if (!path_.empty() && ::lstat(path_.c_str(), &status) == 0 && status.st_ino == inode_) ::unlink(path_.c_str());
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void begin(Sink sink) {
    sink_ = std::move(sink);
    await_connection();
  }
  void close() {
    closed_ = true;
    error_code ec;
    socket_.close(ec);
    pause_.cancel();
  }
  const tcp::endpoint& local() const { return local_; }

 private:
  void await_connection() {
    socket_.async_wait(asio::posix::stream_descriptor::wait_read, [this](error_code ec) {
      if (!ec && !closed_) accept_all();
    });
  }

  void accept_all() {
    for (std::size_t accepted = 0; accepted < kAcceptsAtOnce; ++accepted) {
      tcp::endpoint peer;
      auto length = static_cast<socklen_t>(peer.capacity());
      const bool local = !path_.empty();
      const int socket = ::accept4(socket_.native_handle(), local ? nullptr : peer.data(), local ? nullptr : &length,
                                   SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (socket >= 0) {
        if (!local) peer.resize(length);
        sink_({socket, local ? AF_UNIX : peer.protocol().family(), local ? "unix" : text_of(peer)});
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        return await_connection();
      } else if (errno != EINTR && errno != ECONNABORTED) {
        return pause_accepting();
      }
    }
    await_connection();
  }

  // Out of descriptors or memory: waiting connections stay in the kernel's queue for a moment.
  void pause_accepting() {
    pause_.expires_after(kAcceptPause);
    pause_.async_wait([this](error_code ec) {
      if (!ec && !closed_) accept_all();
    });
  }

  asio::posix::stream_descriptor socket_;
  asio::steady_timer pause_;
  tcp::endpoint local_;
  std::string path_;
  ino_t inode_ = 0;
  Sink sink_;
  bool closed_ = false;
};

Listener::Listener(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Listener::~Listener() = default;

Result<std::unique_ptr<Listener>> Listener::on_tcp(asio::io_context& io, const std::string& address,
                                                   std::uint16_t port) {
  const auto parsed = parse_address(address);
  if (!parsed) return parsed.error();
  const tcp::endpoint endpoint(*parsed, port);
  const auto socket = listen_on(endpoint);
  if (!socket) return socket.error();
  tcp::endpoint local;
  auto length = static_cast<socklen_t>(local.capacity());
  if (::getsockname(*socket, local.data(), &length) == 0) local.resize(length);
  return std::unique_ptr<Listener>(new Listener(std::make_unique<Impl>(io, *socket, local)));
}

Result<std::unique_ptr<Listener>> Listener::on_socket(asio::io_context& io, const std::string& path, SocketFor whom) {
  if (auto ok = check_path(path); !ok) return ok.error();
  const auto socket = listen_on_path(path, whom == SocketFor::kAll ? 0666 : 0600);
  if (!socket) return socket.error();
  return std::unique_ptr<Listener>(new Listener(std::make_unique<Impl>(io, *socket, path)));
}

void Listener::begin(Sink sink) { impl_->begin(std::move(sink)); }
void Listener::close() { impl_->close(); }
std::uint16_t Listener::port() const { return impl_->local().port(); }
std::string Listener::authority() const { return text_of(impl_->local()); }

Result<bool> is_loopback(const std::string& address) {
  const auto parsed = parse_address(address);
  if (!parsed) return parsed.error();
  return parsed->is_loopback();
}

bool fits_socket_path(const std::string& path) { return path.size() < sizeof(sockaddr_un::sun_path) - 1; }

}  // namespace berth::http
