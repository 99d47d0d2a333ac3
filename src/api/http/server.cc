#include "api/http/server.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <cstring>
#include <deque>
#include <optional>
#include <thread>
#include <vector>

#include "api/http/connection.h"
#include "base/check.h"

namespace berth::http {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::chrono::milliseconds kTick{50};
constexpr std::chrono::milliseconds kAcceptPause{100};  // when descriptors have run out
constexpr std::size_t kRefusalsAtOnce = 64;             // connections over the limit that still get their 503
constexpr std::size_t kAcceptsAtOnce = 32;              // then the connections get a turn

// One I/O thread and the connections that live on it. All but start, post and join happen on the thread.
class IoThread {
 public:
  IoThread(std::shared_ptr<Site> site, std::size_t unauthenticated_most)
      : io_(std::make_shared<asio::io_context>(1)),
        site_(std::move(site)),
        unauthenticated_most_(unauthenticated_most),
        work_(io_->get_executor()),
        wakes_(*io_, ::fcntl(posted_->descriptor(), F_DUPFD_CLOEXEC, 0)),
        timer_(*io_) {
    await_posted();
  }

  asio::io_context& io() { return *io_; }
  void start() {
    thread_ = std::thread([this] { run(); });
  }
  template <class Work>
  void post(Work work) {
    asio::post(*io_, std::move(work));
  }

  void adopt(int socket, std::string peer, bool over_limit) {
    auto connection = site_->stopping ? nullptr : make_connection(io_, posted_, site_, socket, std::move(peer));
    if (connection == nullptr) {
      ::close(socket);
      return site_->connection_closed();
    }
    connections_.push_back(connection);
    if (connections_.size() == 1) await_tick();
    if (over_limit && !close_unauthenticated()) {
      ++site_->refused;
      return connection->begin_refused();
    }
    if (unauthenticated_.size() >= unauthenticated_most_) close_unauthenticated();
    unauthenticated_.push_back(connection);
    connection->begin();
  }

  void drain() {
    for (const auto& connection : connections_) connection->drain();
  }

  // Ends every connection and lets the thread run out of work.
  void finish() {
    for (const auto& connection : connections_) connection->kill();
    connections_.clear();
    unauthenticated_.clear();
    timer_.cancel();
    wakes_.close();
    work_.reset();
  }

  void join() {
    if (thread_.joinable()) thread_.join();
    posted_->close();
  }

 private:
  void run() {
    posted_->belongs_to_this_thread();
    while (true) {
      try {
        io_->run();
        return;
      } catch (const std::exception& exception) {  // out of memory, or a callback that threw: one connection's loss
        if (site_->options.on_fault) site_->options.on_fault(exception.what());
        posted_->wake();  // it may have been posted, and more behind it
      }
    }
  }

  void await_posted() {
    wakes_.async_wait(asio::posix::stream_descriptor::wait_read, [this](error_code ec) {
      if (ec) return;
      posted_->note_wakes();
      await_posted();
      posted_->run_posted();
    });
  }

  // The clock of the deadlines stands still while there is no connection.
  void await_tick() {
    timer_.expires_after(kTick);
    timer_.async_wait([this](error_code ec) {
      if (ec) return;
      tick();
    });
  }

  // Closes the oldest connection that is not authenticated. Returns false if there is none.
  bool close_unauthenticated() {
    std::erase_if(unauthenticated_, [](const auto& each) { return each->closed() || each->authenticated(); });
    if (unauthenticated_.empty()) return false;
    unauthenticated_.front()->kill();
    unauthenticated_.pop_front();
    ++site_->unauthenticated_closed;
    return true;
  }

  void tick() {
    const auto now = Clock::now();
    for (const auto& connection : connections_) connection->tick(now);
    std::erase_if(connections_, [](const auto& connection) { return connection->closed(); });
    std::erase_if(unauthenticated_, [](const auto& each) { return each->closed() || each->authenticated(); });
    if (!connections_.empty()) await_tick();
  }

  std::shared_ptr<asio::io_context> io_;
  std::shared_ptr<IoQueue> posted_ = std::make_shared<IoQueue>();
  std::shared_ptr<Site> site_;
  const std::size_t unauthenticated_most_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  asio::posix::stream_descriptor wakes_;
  asio::steady_timer timer_;
  std::vector<std::shared_ptr<Connection>> connections_;
  std::deque<std::shared_ptr<Connection>> unauthenticated_;  // among connections_, oldest first, and some more
  std::thread thread_;
};

std::string text_of(const asio::ip::tcp::endpoint& endpoint) {
  const std::string address = endpoint.address().to_string();
  return (endpoint.address().is_v6() ? "[" + address + "]" : address) + ":" + std::to_string(endpoint.port());
}

Error cannot_listen(const asio::ip::tcp::endpoint& endpoint, std::string_view doing) {
  std::string message =
      "cannot listen on " + text_of(endpoint) + ": " + std::string(doing) + ": " + std::strerror(errno);
  if (errno == EADDRINUSE) message += " (another server has this port; choose another, or 0 for a free one)";
  return {ErrorCode::kIo, std::move(message)};
}

// By hand, because Asio makes sockets that leak into every child process.
Result<int> listen_on(const asio::ip::tcp::endpoint& endpoint) {
  const int socket = ::socket(endpoint.protocol().family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket < 0) return cannot_listen(endpoint, "socket");
  const int yes = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  const bool bound = ::bind(socket, endpoint.data(), static_cast<socklen_t>(endpoint.size())) == 0;
  if (bound && ::listen(socket, SOMAXCONN) == 0) return socket;
  const Error error = cannot_listen(endpoint, bound ? "listen" : "bind");
  ::close(socket);
  return error;
}

}  // namespace

class Server::Core {
 public:
  Core(std::shared_ptr<Site> site, std::size_t threads) : site_(std::move(site)) {
    const std::size_t share = std::max<std::size_t>(1, site_->options.limits.unauthenticated / threads);
    for (std::size_t i = 0; i < threads; ++i) threads_.push_back(std::make_unique<IoThread>(site_, share));
    acceptor_.emplace(threads_.front()->io());
    pause_.emplace(threads_.front()->io());
  }

  Result<void> listen(const asio::ip::tcp::endpoint& endpoint) {
    const auto socket = listen_on(endpoint);
    if (!socket) return socket.error();
    acceptor_->assign(endpoint.protocol(), *socket);
    local_ = acceptor_->local_endpoint();
    await_connection();
    for (const auto& thread : threads_) thread->start();
    return {};
  }

  const asio::ip::tcp::endpoint& local() const { return local_; }
  const Site& site() const { return *site_; }

  void stop(std::chrono::milliseconds grace) {
    if (std::exchange(stopped_, true)) return;
    site_->stopping = true;
    threads_.front()->post([this] {
      error_code ec;
      acceptor_->close(ec);
      pause_->cancel();
      for (const auto& thread : threads_) thread->post([target = thread.get()] { target->drain(); });
    });
    site_->wait_until_empty(grace);
    for (const auto& thread : threads_) thread->post([target = thread.get()] { target->finish(); });
    for (const auto& thread : threads_) thread->join();
    site_->stop_workers();
  }

 private:
  void await_connection() {
    acceptor_->async_wait(asio::ip::tcp::acceptor::wait_read, [this](error_code ec) {
      if (ec || site_->stopping) return;
      accept_all();
    });
  }

  void accept_all() {
    for (std::size_t accepted = 0; accepted < kAcceptsAtOnce; ++accepted) {
      asio::ip::tcp::endpoint peer;
      auto length = static_cast<socklen_t>(peer.capacity());
      const int socket = ::accept4(acceptor_->native_handle(), peer.data(), &length, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (socket >= 0) {
        peer.resize(length);
        hand_over(socket, text_of(peer));
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
    pause_->expires_after(kAcceptPause);
    pause_->async_wait([this](error_code ec) {
      if (ec || site_->stopping) return;
      accept_all();
    });
  }

  void hand_over(int socket, std::string peer) {
    const std::size_t limit = site_->options.limits.connections;
    const std::uint64_t open = ++site_->open;
    ++site_->accepted;
    if (open > limit + kRefusalsAtOnce) {
      ++site_->refused;
      ::close(socket);
      return site_->connection_closed();
    }
    IoThread* thread = threads_[next_thread_++ % threads_.size()].get();
    thread->post([thread, socket, peer = std::move(peer), over_limit = open > limit]() mutable {
      thread->adopt(socket, std::move(peer), over_limit);
    });
  }

  std::shared_ptr<Site> site_;
  std::vector<std::unique_ptr<IoThread>> threads_;
  std::optional<asio::ip::tcp::acceptor> acceptor_;  // on the first thread, as is pause_
  std::optional<asio::steady_timer> pause_;
  asio::ip::tcp::endpoint local_;
  std::size_t next_thread_ = 0;
  bool stopped_ = false;
};

Server::Server(std::unique_ptr<Core> core) : core_(std::move(core)) {}

Server::~Server() { stop(std::chrono::milliseconds(0)); }

namespace {

Result<asio::ip::address> parse_address(const std::string& text) {
  error_code ec;
  const auto address = asio::ip::make_address(text, ec);
  if (ec) return invalid("\"" + text + "\" is not an IP address to listen on, as 127.0.0.1 or ::1 would be");
  return address;
}

}  // namespace

Result<bool> is_loopback(const std::string& address) {
  const auto parsed = parse_address(address);
  if (!parsed) return parsed.error();
  return parsed->is_loopback();
}

Result<std::unique_ptr<Server>> Server::start(ServerOptions options, Router router, Authenticator authenticator) {
  BERTH_CHECK(options.io_threads > 0);
  const auto address = parse_address(options.address);
  if (!address) return address.error();
  const asio::ip::tcp::endpoint endpoint(*address, options.port);
  const std::size_t threads = options.io_threads;
  auto site = std::make_shared<Site>(std::move(options), std::move(router), std::move(authenticator));
  auto core = std::make_unique<Core>(std::move(site), threads);
  if (auto listening = core->listen(endpoint); !listening) return listening.error();
  return std::unique_ptr<Server>(new Server(std::move(core)));
}

std::uint16_t Server::port() const { return core_->local().port(); }

std::string Server::url() const { return "http://" + text_of(core_->local()); }

ServerCounters Server::counters() const {
  const Site& site = core_->site();
  return {.connections_accepted = site.accepted,
          .connections_refused = site.refused,
          .connections_open = site.open,
          .unauthenticated_closed = site.unauthenticated_closed,
          .requests = site.requests,
          .streams_open = site.streams,
          .streams_dropped = site.streams_dropped,
          .timeouts = site.timeouts};
}

void Server::stop(std::chrono::milliseconds grace) { core_->stop(grace); }

}  // namespace berth::http
