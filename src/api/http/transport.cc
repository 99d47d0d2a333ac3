#include "api/http/transport.h"

#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <optional>
#include <utility>

namespace berth::http {
namespace {

namespace asio = boost::asio;
using Socket = asio::generic::stream_protocol::socket;
using boost::system::error_code;

// A socket as it is.
class PlainTransport : public Transport {
 public:
  explicit PlainTransport(Socket socket) : socket_(std::move(socket)) {
    error_code ignored;
    socket_.non_blocking(true, ignored);  // otherwise take_input would wait
  }

  void handshake(std::function<void(Handshake)> done) override {
    asio::post(socket_.get_executor(), [done = std::move(done)] { done(Handshake::kDone); });
  }
  Peer peer() const override { return {}; }
  void read(char* to, std::size_t at_most, Done done) override {
    socket_.async_read_some(asio::buffer(to, at_most), std::move(done));
  }
  void write(const char* from, std::size_t size, Done done) override {
    socket_.async_write_some(asio::buffer(from, size), std::move(done));
  }
  void await_input(std::function<void(error_code)> done) override {
    socket_.async_wait(Socket::wait_read, std::move(done));
  }
  std::size_t take_input(char* to, std::size_t at_most, error_code& failure) override {
    return socket_.read_some(asio::buffer(to, at_most), failure);
  }
  void end_sending(error_code& failure) override { socket_.shutdown(Socket::shutdown_send, failure); }
  void cancel() override {
    error_code ignored;
    socket_.cancel(ignored);
  }
  void close() override {
    error_code ignored;
    socket_.close(ignored);
  }

 private:
  Socket socket_;
};

struct FreeConnection {
  void operator()(SSL* connection) const { SSL_free(connection); }
};

bool is_letter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }

// TLS by OpenSSL on the same descriptor: each step is tried, and where OpenSSL wants more it is tried again once the
// socket is ready. What was begun before cancel() finds another turn here, and ends.
class TlsTransport : public Transport {
 public:
  TlsTransport(Socket socket, SSL* connection) : socket_(std::move(socket)), tls_(connection) {
    SSL_set_fd(tls_.get(), socket_.native_handle());
  }

  void handshake(std::function<void(Handshake)> done) override { look_at_first_byte(std::move(done)); }
  Peer peer() const override;
  void read(char* to, std::size_t at_most, Done done) override;
  void write(const char* from, std::size_t size, Done done) override;
  void await_input(std::function<void(error_code)> done) override;
  std::size_t take_input(char* to, std::size_t at_most, error_code& failure) override;
  void end_sending(error_code& failure) override;
  void cancel() override {
    ++turn_;
    error_code ignored;
    socket_.cancel(ignored);
  }
  void close() override {
    ++turn_;
    error_code ignored;
    socket_.close(ignored);
  }

 private:
  void look_at_first_byte(std::function<void(Handshake)> done);
  void go_on_with_handshake(std::function<void(Handshake)> done);
  // What the socket has to be ready for before the step that returned `result` is tried again; nothing: it has failed.
  std::optional<Socket::wait_type> wanted_after(int result);
  // Calls `again` once the socket is ready, or `ended` with the error.
  template <class Again, class Ended>
  void when_ready(Socket::wait_type what, Again again, Ended ended) {
    socket_.async_wait(what, [this, turn = turn_, again = std::move(again), ended = std::move(ended)](error_code ec) {
      if (!ec && turn != turn_) ec = asio::error::operation_aborted;
      if (ec) return ended(ec);
      again();
    });
  }
  template <class Call>
  void later(Call call) {
    asio::post(socket_.get_executor(), std::move(call));
  }

  Socket socket_;
  std::unique_ptr<SSL, FreeConnection> tls_;
  std::uint64_t turn_ = 0;
  bool plain_ = false;   // the client does not speak TLS, or nothing is sent any more
  bool broken_ = false;  // OpenSSL may not be asked any more
  error_code failure_;
};

std::optional<Socket::wait_type> TlsTransport::wanted_after(int result) {
  switch (SSL_get_error(tls_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      return Socket::wait_read;
    case SSL_ERROR_WANT_WRITE:
      return Socket::wait_write;
    case SSL_ERROR_ZERO_RETURN:
      failure_ = asio::error::eof;
      return std::nullopt;
    default:
      broken_ = true;
      failure_ = asio::error::connection_reset;
      return std::nullopt;
  }
}

void TlsTransport::look_at_first_byte(std::function<void(Handshake)> done) {
  char first = 0;
  const ssize_t count = ::recv(socket_.native_handle(), &first, 1, MSG_PEEK | MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
    return when_ready(
        Socket::wait_read, [this, done] { look_at_first_byte(done); },
        [done](error_code) { done(Handshake::kFailed); });
  }
  if (count <= 0) return later([done] { done(Handshake::kFailed); });
  if (!is_letter(first)) return go_on_with_handshake(std::move(done));
  plain_ = true;
  later([done] { done(Handshake::kNotTls); });
}

void TlsTransport::go_on_with_handshake(std::function<void(Handshake)> done) {
  ERR_clear_error();
  const int result = SSL_accept(tls_.get());
  if (result == 1) {
    // A client that waits for this before it sends on (Nagle) would else wait 40 ms: there is nothing else to send.
    const int yes = 1;
    ::setsockopt(socket_.native_handle(), IPPROTO_TCP, TCP_QUICKACK, &yes, sizeof yes);
    return later([done] { done(Handshake::kDone); });
  }
  const auto wanted = wanted_after(result);
  if (!wanted) return later([done] { done(Handshake::kFailed); });
  when_ready(
      *wanted, [this, done] { go_on_with_handshake(done); }, [done](error_code) { done(Handshake::kFailed); });
}

Peer TlsTransport::peer() const {
  const std::unique_ptr<X509, decltype(&X509_free)> shown(SSL_get1_peer_certificate(tls_.get()), &X509_free);
  if (shown == nullptr || SSL_get_verify_result(tls_.get()) != X509_V_OK) return {};
  const auto found = name_of_client(tls_.get());
  if (!found) return {.refusal = "the client certificate is good, but " + found.error().message};
  const std::string subject = "cert:" + found->name;
  return {.subject = subject, .user = subject, .proof = kByCertificate, .ends = found->ends};
}

void TlsTransport::read(char* to, std::size_t at_most, Done done) {
  if (plain_) return socket_.async_read_some(asio::buffer(to, at_most), std::move(done));
  if (broken_) return later([done = std::move(done)] { done(asio::error::connection_reset, 0); });
  ERR_clear_error();
  std::size_t count = 0;
  const int result = SSL_read_ex(tls_.get(), to, at_most, &count);
  if (result == 1) return later([done = std::move(done), count] { done({}, count); });
  const auto wanted = wanted_after(result);
  if (!wanted) return later([done = std::move(done), failure = failure_] { done(failure, 0); });
  when_ready(
      *wanted, [this, to, at_most, done] { read(to, at_most, done); }, [done](error_code ec) { done(ec, 0); });
}

void TlsTransport::write(const char* from, std::size_t size, Done done) {
  if (plain_) return socket_.async_write_some(asio::buffer(from, size), std::move(done));
  if (broken_) return later([done = std::move(done)] { done(asio::error::connection_reset, 0); });
  ERR_clear_error();
  std::size_t count = 0;
  const int result = SSL_write_ex(tls_.get(), from, size, &count);
  if (result == 1) return later([done = std::move(done), count] { done({}, count); });
  const auto wanted = wanted_after(result);
  if (!wanted) return later([done = std::move(done), failure = failure_] { done(failure, 0); });
  when_ready(
      *wanted, [this, from, size, done] { write(from, size, done); }, [done](error_code ec) { done(ec, 0); });
}

void TlsTransport::await_input(std::function<void(error_code)> done) {
  if (!plain_ && SSL_has_pending(tls_.get()) == 1) return later([done = std::move(done)] { done({}); });
  socket_.async_wait(Socket::wait_read, std::move(done));
}

std::size_t TlsTransport::take_input(char* to, std::size_t at_most, error_code& failure) {
  failure = {};
  std::size_t count = 0;
  ERR_clear_error();
  const int result = broken_ ? 0 : SSL_read_ex(tls_.get(), to, at_most, &count);
  if (result == 1) return count;
  failure = asio::error::would_block;
  if (broken_ || !wanted_after(result)) failure = asio::error::connection_reset;
  return 0;
}

void TlsTransport::end_sending(error_code& failure) {
  if (!plain_ && !broken_) {
    ERR_clear_error();
    SSL_shutdown(tls_.get());  // says that nothing follows; if it does not get through at once, so be it
    ERR_clear_error();
  }
  plain_ = true;
  socket_.shutdown(Socket::shutdown_send, failure);
}

}  // namespace

std::unique_ptr<Transport> make_transport(asio::io_context& io, int socket, int family, const TlsCredentials* tls) {
  Socket taken(io);
  error_code ec;
  taken.assign(asio::generic::stream_protocol(family, 0), socket, ec);
  if (ec) return nullptr;
  if (tls == nullptr) return std::make_unique<PlainTransport>(std::move(taken));
  SSL* connection = tls->new_connection();
  if (connection == nullptr) {
    taken.release(ec);  // the caller closes it
    return nullptr;
  }
  return std::make_unique<TlsTransport>(std::move(taken), connection);
}

}  // namespace berth::http
