#include "api/http/server.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <optional>
#include <thread>
#include <vector>

#include "api/http/connection.h"
#include "api/http/listener.h"
#include "base/check.h"

namespace berth::http {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::chrono::milliseconds kTick{50};
constexpr std::size_t kRefusalsAtOnce = 64;  // connections over the limit that still get their 503

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

  void adopt(Accepted accepted, bool over_limit) {
    const int socket = accepted.socket;
    auto connection = site_->stopping ? nullptr : make_connection(io_, posted_, site_, std::move(accepted));
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

}  // namespace

class Server::Core {
 public:
  Core(std::shared_ptr<Site> site, std::size_t threads) : site_(std::move(site)) {
    const std::size_t share = std::max<std::size_t>(1, site_->options.limits.unauthenticated / threads);
    for (std::size_t i = 0; i < threads; ++i) threads_.push_back(std::make_unique<IoThread>(site_, share));
  }

  Result<void> listen() {
    const ServerOptions& options = site_->options;
    auto tcp = Listener::on_tcp(threads_.front()->io(), options.address, options.port);
    if (!tcp) return tcp.error();
    tcp_ = std::move(*tcp);
    if (!options.socket_path.empty()) {
      auto local = Listener::on_socket(threads_.front()->io(), options.socket_path,
                                       options.socket_for_all ? SocketFor::kAll : SocketFor::kServerUser);
      if (!local) return local.error();
      local_ = std::move(*local);
    }
    for (Listener* listener : {tcp_.get(), local_.get()}) {
      if (listener != nullptr) listener->begin([this](Accepted accepted) { hand_over(std::move(accepted)); });
    }
    for (const auto& thread : threads_) thread->start();
    return {};
  }

  const Listener& tcp() const { return *tcp_; }
  const Site& site() const { return *site_; }

  void stop(std::chrono::milliseconds grace) {
    if (std::exchange(stopped_, true)) return;
    site_->stopping = true;
    threads_.front()->post([this] {
      for (Listener* listener : {tcp_.get(), local_.get()}) {
        if (listener != nullptr) listener->close();
      }
      for (const auto& thread : threads_) thread->post([target = thread.get()] { target->drain(); });
    });
    site_->wait_until_empty(grace);
    for (const auto& thread : threads_) thread->post([target = thread.get()] { target->finish(); });
    for (const auto& thread : threads_) thread->join();
    site_->stop_workers();
  }

 private:
  void hand_over(Accepted accepted) {
    const std::size_t limit = site_->options.limits.connections;
    const std::uint64_t open = ++site_->open;
    ++site_->accepted;
    if (site_->stopping || open > limit + kRefusalsAtOnce) {
      ++site_->refused;
      ::close(accepted.socket);
      return site_->connection_closed();
    }
    IoThread* thread = threads_[next_thread_++ % threads_.size()].get();
    thread->post([thread, accepted = std::move(accepted), over_limit = open > limit]() mutable {
      thread->adopt(std::move(accepted), over_limit);
    });
  }

  std::shared_ptr<Site> site_;
  std::vector<std::unique_ptr<IoThread>> threads_;
  std::unique_ptr<Listener> tcp_;  // on the first thread
  std::unique_ptr<Listener> local_;
  std::size_t next_thread_ = 0;
  bool stopped_ = false;
};

Server::Server(std::unique_ptr<Core> core) : core_(std::move(core)) {}

Server::~Server() { stop(std::chrono::milliseconds(0)); }

Result<std::unique_ptr<Server>> Server::start(ServerOptions options, Router router, Authenticator authenticator) {
  BERTH_CHECK(options.io_threads > 0);
  BERTH_CHECK(options.socket_path.empty() || options.peer_of_socket);
  const std::size_t threads = options.io_threads;
  auto site = std::make_shared<Site>(std::move(options), std::move(router), std::move(authenticator));
  auto core = std::make_unique<Core>(std::move(site), threads);
  if (auto listening = core->listen(); !listening) return listening.error();
  return std::unique_ptr<Server>(new Server(std::move(core)));
}

std::uint16_t Server::port() const { return core_->tcp().port(); }

std::string Server::url() const {
  return (core_->site().options.tls == nullptr ? "http://" : "https://") + core_->tcp().authority();
}

ServerCounters Server::counters() const {
  const Site& site = core_->site();
  return {.connections_accepted = site.accepted,
          .connections_refused = site.refused,
          .connections_open = site.open,
          .unauthenticated_closed = site.unauthenticated_closed,
          .handshakes_failed = site.handshakes_failed,
          .requests = site.requests,
          .streams_open = site.streams,
          .streams_dropped = site.streams_dropped,
          .timeouts = site.timeouts};
}

void Server::stop(std::chrono::milliseconds grace) { core_->stop(grace); }

}  // namespace berth::http
