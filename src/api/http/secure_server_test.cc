// The server behind TLS and on a Unix socket. What it does with requests is in server_test.cc.

#include <doctest/doctest.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/un.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "api/http/server.h"
#include "api/http/test_certificates.h"
#include "api/http/test_socket.h"

namespace berth::http {
namespace {

using std::chrono::milliseconds;

const std::string kSecureToken(64, 'b');
const std::string kBearer = "Authorization: Bearer " + kSecureToken + "\r\n";
constexpr std::size_t kLargeBytes = 8 * 1024 * 1024;

Route plain_route(Method method, std::string pattern, Handler handler) {
  return {.method = method,
          .pattern = pattern,
          .access = Access::kToken,
          .doc = {.operation_id = name_of(method) + pattern,
                  .summary = "For the test.",
                  .responses = {{.status = 200, .description = "Done."}}},
          .handler = std::move(handler)};
}

Router secure_router() {
  Router router;
  router.add(plain_route(Method::kGet, "/who", [](const Request& request, const Responder& responder) {
    const auto& who = request.principal;
    responder.send(
        {.body = who.name + " by " + std::string(who.proof) + " over " + std::string(name_of(request.carrier))});
  }));
  router.add(plain_route(Method::kGet, "/large", [](const Request&, const Responder& responder) {
    responder.send({.body = std::string(kLargeBytes, 'x')});
  }));
  Route echo = plain_route(Method::kPost, "/echo", [](const Request& request, const Responder& responder) {
    responder.send({.content_type = "text/plain", .body = request.body});
  });
  echo.doc.request_schema = "Any";
  router.add(echo);
  Route events = plain_route(Method::kGet, "/events", [](const Request& request, const Responder& responder) {
    const Stream stream = responder.stream(request.stream_format);
    for (int i = 0; i < 100; ++i) stream.send({.id = std::to_string(i), .data = std::string(500, 'e')});
    stream.close();
  });
  events.doc.streamed_schema = "Event";
  router.add(events);
  return router;
}

struct SecureFixture {
  explicit SecureFixture(ServerOptions options = {}, bool clients = false) {
    std::signal(SIGPIPE, SIG_IGN);  // as the daemon does
    authority.sign("server", "server", "DNS:localhost");
    auto loaded = TlsCredentials::load(
        {authority.path("server.pem"), authority.path("server.key"), clients ? authority.path("ca.pem") : ""});
    REQUIRE(loaded);
    options.tls = std::move(*loaded);
    options.socket_path = authority.path("s");
    options.peer_of_socket = [this](int) {
      std::this_thread::sleep_for(milliseconds(peer_takes_ms));
      return Peer{.subject = "user:ada", .user = "ada", .proof = kBySocket};
    };
    credentials = options.tls.get();
    Authenticator authenticator;
    REQUIRE(authenticator.add(kSecureToken, {.name = "ann", .user = "ann"}));
    authenticator.look_up_peers_by([this](const Peer& peer) -> std::optional<policy::Subject> {
      if (peers_lost) return std::nullopt;
      return policy::Subject{.name = peer.subject, .user = peer.user, .proof = peer.proof};
    });
    auto started = Server::start(std::move(options), secure_router(), std::move(authenticator));
    REQUIRE(started);
    server = std::move(*started);
  }

  TestAuthority authority;
  std::atomic<int> peer_takes_ms = 0;
  std::atomic<bool> peers_lost = false;
  TlsCredentials* credentials = nullptr;
  std::unique_ptr<Server> server;
};

// A blocking client. `client`: the name of its certificate, or empty.
class SecureClient {
 public:
  explicit SecureClient(const SecureFixture& fixture, const std::string& client = {})
      : context_(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free), tls_(nullptr, &SSL_free) {
    SSL_CTX_load_verify_locations(context_.get(), fixture.authority.path("ca.pem").c_str(), nullptr);
    SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
    if (!client.empty()) {
      SSL_CTX_use_certificate_file(context_.get(), fixture.authority.path(client + ".pem").c_str(), SSL_FILETYPE_PEM);
      SSL_CTX_use_PrivateKey_file(context_.get(), fixture.authority.path(client + ".key").c_str(), SSL_FILETYPE_PEM);
    }
    tls_.reset(SSL_new(context_.get()));
    socket_ = ::socket(AF_INET, SOCK_STREAM, 0);
    timeval patience{.tv_sec = 20, .tv_usec = 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(fixture.server->port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    SSL_set_fd(tls_.get(), socket_);
    connected_ = SSL_connect(tls_.get()) == 1;
  }
  ~SecureClient() { ::close(socket_); }
  SecureClient(const SecureClient&) = delete;
  SecureClient& operator=(const SecureClient&) = delete;

  bool connected() const { return connected_; }
  void send(std::string_view bytes) { SSL_write(tls_.get(), bytes.data(), static_cast<int>(bytes.size())); }

  // Everything that comes until the server ends, or `most` bytes.
  std::string receive(std::size_t most = ~std::size_t{0}) {
    std::string all;
    char bytes[16384];
    while (all.size() < most) {
      const int count = SSL_read(tls_.get(), bytes, sizeof bytes);
      if (count <= 0) break;
      all.append(bytes, static_cast<std::size_t>(count));
    }
    return all;
  }

 private:
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
  std::unique_ptr<SSL, decltype(&SSL_free)> tls_;
  int socket_ = -1;
  bool connected_ = false;
};

std::string get_last(const std::string& path, const std::string& headers = kBearer) {
  return "GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + headers + "\r\n";
}

bool ends_with(const std::string& text, std::string_view end) { return std::string_view(text).ends_with(end); }

int connect_to_socket(const SecureFixture& fixture) {
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  fixture.authority.path("s").copy(static_cast<char*>(address.sun_path), sizeof address.sun_path - 1);
  REQUIRE(::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  return socket;
}

std::string ask(int socket, const std::string& request) {
  std::string all;
  if (!request.empty()) {
    CHECK(::send(socket, request.data(), request.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(request.size()));
    char bytes[16384];
    for (ssize_t count = 0; (count = ::recv(socket, bytes, sizeof bytes, 0)) > 0;)
      all.append(bytes, static_cast<std::size_t>(count));
  }
  ::close(socket);
  return all;
}

std::string ask_socket(const SecureFixture& fixture, const std::string& request) {
  return ask(connect_to_socket(fixture), request);
}

TEST_CASE("secure server: requests, large answers, large bodies and streams go through TLS whole") {
  const SecureFixture fixture;
  CHECK(fixture.server->url().starts_with("https://127.0.0.1:"));
  SecureClient who(fixture);
  who.send("GET /who HTTP/1.1\r\nHost: x\r\n" + kBearer + "\r\n" + get_last("/who"));
  const std::string both = who.receive();
  CHECK(ends_with(both, "ann by token over tls"));
  CHECK(both.find("ann by token over tls") < both.size() - 100);  // the first of the two
  CHECK(both.find("\r\nStrict-Transport-Security: max-age=31536000\r\n") != std::string::npos);

  SecureClient large(fixture);
  large.send(get_last("/large"));
  const std::string answer = large.receive();
  CHECK(answer.size() > kLargeBytes);
  CHECK(answer.find_first_not_of('x', answer.find("\r\n\r\n") + 4) == std::string::npos);

  SecureClient echo(fixture);
  const std::string body(900'000, 'y');
  echo.send("POST /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n" + kBearer +
            "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n");
  for (std::size_t at = 0; at < body.size(); at += 100'000) echo.send(std::string_view(body).substr(at, 100'000));
  CHECK(ends_with(echo.receive(), body));

  SecureClient bytewise(fixture);
  for (const char byte : get_last("/who")) bytewise.send({&byte, 1});
  CHECK(ends_with(bytewise.receive(), "ann by token over tls"));

  SecureClient stream(fixture);
  stream.send("GET /events HTTP/1.1\r\nHost: x\r\n" + kBearer + "\r\nchatter that means nothing");
  const std::string events = stream.receive();
  CHECK(events.find("id: 99\n") != std::string::npos);
  CHECK(ends_with(events, "0\r\n\r\n"));
}

TEST_CASE("secure server: plain HTTP is told, garbage and silence are ended, and others are served meanwhile") {
  ServerOptions options;
  options.timeouts.handshake = milliseconds(300);
  const SecureFixture fixture(options);
  TestSocket plain(fixture.server->port());
  plain.send(get_last("/who"));
  const Answer told = plain.answer();
  CHECK(told.status == 400);
  CHECK(told.body.find("https://") != std::string::npos);

  TestSocket silent(fixture.server->port());
  TestSocket slow(fixture.server->port());
  slow.send(std::string("\x16\x03\x01\x02\x00\x01", 6));
  TestSocket garbage(fixture.server->port());
  garbage.send(std::string(1000, '\x01'));
  SecureClient good(fixture);
  good.send(get_last("/who"));
  CHECK(ends_with(good.receive(), "ann by token over tls"));
  while (garbage.receive()) {
  }
  CHECK(silent.is_closed_by_server());
  CHECK(slow.is_closed_by_server());
  CHECK(fixture.server->counters().handshakes_failed == 1);
  CHECK(fixture.server->counters().timeouts == 2);
}

TEST_CASE("secure server: connections count before their handshake; over the limit the oldest is closed") {
  ServerOptions options;
  options.limits.unauthenticated = 8;
  options.limits.connections = 12;
  const SecureFixture fixture(options);
  std::vector<TestSocket> idle;
  for (int i = 0; i < 30; ++i) idle.emplace_back(fixture.server->port());
  SecureClient good(fixture);
  good.send(get_last("/who"));
  CHECK(ends_with(good.receive(), "ann by token over tls"));
  CHECK(fixture.server->counters().unauthenticated_closed >= 20);
}

TEST_CASE("secure server: more connections than it allows are told so, by TLS") {
  ServerOptions options;
  options.limits.connections = 2;
  options.io_threads = 1;
  const SecureFixture fixture(options);
  SecureClient first(fixture);
  SecureClient second(fixture);
  for (SecureClient* each : {&first, &second}) {
    each->send("GET /who HTTP/1.1\r\nHost: x\r\n" + kBearer + "\r\n");
    CHECK(each->receive(1).starts_with("HTTP/1.1 200"));
  }
  SecureClient third(fixture);
  CHECK(third.receive().starts_with("HTTP/1.1 503"));
}

TEST_CASE("secure server: a client certificate says who asks, unless there is a token") {
  SecureFixture fixture({}, true);
  fixture.authority.sign("ada", "ada");
  fixture.authority.sign("id", "other", "URI:spiffe://corp/ci,DNS:x");
  fixture.authority.sign("two", "other", "URI:spiffe://corp/ci,URI:http://x");
  fixture.authority.sign("nameless", "");
  fixture.authority.sign("long", std::string(64, 'n'));
  fixture.authority.sign("old", "ada", "", -1);
  const auto answer = [&](const std::string& client, const std::string& headers = "") {
    SecureClient asking(fixture, client);
    asking.send(get_last("/who", headers));
    return asking.receive();
  };
  CHECK(ends_with(answer("ada"), "cert:ada by certificate over tls"));
  CHECK(ends_with(answer("id"), "cert:spiffe://corp/ci by certificate over tls"));
  CHECK(ends_with(answer("long"), "cert:" + std::string(64, 'n') + " by certificate over tls"));
  CHECK(ends_with(answer("ada", kBearer), "ann by token over tls"));
  CHECK(answer("ada", "Authorization: Bearer " + std::string(64, 'c') + "\r\n").starts_with("HTTP/1.1 401"));
  CHECK(answer("").starts_with("HTTP/1.1 401"));
  for (const char* other : {"Sec-Fetch-Site: cross-site\r\n", "Sec-Fetch-Site: same-site\r\n",
                            "Origin: https://evil\r\n", "Origin: null\r\n", "Origin: http://x\r\n"}) {
    CHECK(answer("ada", other).starts_with("HTTP/1.1 403"));
    CHECK(answer("ada", other + kBearer).starts_with("HTTP/1.1 200"));  // no browser adds a token by itself
  }
  for (const char* own : {"Sec-Fetch-Site: same-origin\r\n", "Sec-Fetch-Site: none\r\n", "Origin: https://x\r\n"})
    CHECK(answer("ada", own).starts_with("HTTP/1.1 200"));
  CHECK(answer("two").find("has to be the only one") != std::string::npos);
  CHECK(answer("nameless").find("neither a SPIFFE id nor a common name") != std::string::npos);
  CHECK(answer("old").empty());
  SecureFixture stranger({}, true);
  stranger.authority.sign("eve", "ada");
  SecureClient eve(stranger, "eve");  // good there
  eve.send(get_last("/who", ""));
  CHECK(ends_with(eve.receive(), "cert:ada by certificate over tls"));
  std::filesystem::copy_file(stranger.authority.path("eve.pem"), fixture.authority.path("eve.pem"));
  std::filesystem::copy_file(stranger.authority.path("eve.key"), fixture.authority.path("eve.key"));
  CHECK(answer("eve").empty());
  fixture.peers_lost = true;
  CHECK(answer("ada").starts_with("HTTP/1.1 401"));
}

TEST_CASE("secure server: a slow look at a peer holds up neither other connections nor the end") {
  SecureFixture fixture;
  CHECK(ends_with(ask_socket(fixture, get_last("/who", "")), "user:ada by socket over unix-socket"));
  CHECK(ends_with(ask_socket(fixture, get_last("/who")), "ann by token over unix-socket"));
  fixture.peer_takes_ms = 3000;
  ask_socket(fixture, "");  // comes and goes
  std::thread waiting([socket = connect_to_socket(fixture)] { ask(socket, get_last("/who", "")); });
  const auto begun = std::chrono::steady_clock::now();
  SecureClient other(fixture);
  other.send(get_last("/who"));
  CHECK(ends_with(other.receive(), "ann by token over tls"));
  CHECK(std::chrono::steady_clock::now() - begun < milliseconds(2700));
  fixture.server->stop(milliseconds(0));
  waiting.join();
  fixture.server.reset();
  CHECK_FALSE(std::filesystem::exists(fixture.authority.path("s")));
}

TEST_CASE("secure server: new credentials come while many connect, and clients break off anywhere") {
  SecureFixture fixture;
  fixture.authority.sign("next", "next", "DNS:localhost");
  std::atomic<int> served = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 25; ++i) {
        SecureClient client(fixture);
        client.send(get_last(i % 5 == 0 ? "/large" : i % 5 == 1 ? "/events" : "/who"));
        if ((i + t) % 3 == 0) continue;  // breaks off
        if (client.receive().starts_with("HTTP/1.1 200")) ++served;
      }
    });
  }
  for (int turn = 0; turn < 20; ++turn) {
    const char* from = turn % 2 == 0 ? "next" : "server0";
    if (turn == 0) {
      std::filesystem::copy_file(fixture.authority.path("server.pem"), fixture.authority.path("server0.pem"));
      std::filesystem::copy_file(fixture.authority.path("server.key"), fixture.authority.path("server0.key"));
    }
    for (const char* end : {".pem", ".key"}) {
      std::filesystem::copy_file(fixture.authority.path(std::string(from) + end),
                                 fixture.authority.path(std::string("server") + end),
                                 std::filesystem::copy_options::overwrite_existing);
      static_cast<void>(fixture.credentials->reload().has_value());
    }
    std::this_thread::sleep_for(milliseconds(5));
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(served > 60);
}

}  // namespace
}  // namespace berth::http
