// A WebSocket of a real server, joined to a socket pair.

#include <doctest/doctest.h>
#include <sys/socket.h>

#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "api/http/server.h"
#include "api/http/test_socket.h"
#include "base/web_socket.h"
#include "model/shell_message.h"

namespace berth::http {
namespace {

constexpr const char* kRelayToken = "relay-0123456789abcdef";
constexpr std::uint32_t kMask = 0x01020304;

// The end of a relay, from whichever thread tells it.
struct RelayTold {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<std::string> last;

  void set(std::string_view message) {
    const std::lock_guard lock(mutex);
    last = std::string(message);
    changed.notify_all();
  }
  std::string wait() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return last.has_value(); });
    return *last;
  }
};

// A server with one route, which joins its client to `shell`, the other end of a socket pair.
struct RelayWorld {
  explicit RelayWorld(std::chrono::milliseconds heartbeat = std::chrono::milliseconds(15'000)) {
    int ends[2];
    REQUIRE_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    shell = ends[0];
    const auto stream = std::shared_ptr<const int>(new int(ends[1]), [](const int* open) {
      ::close(*open);
      delete open;
    });
    offered = stream;
    Router router;
    router.add({.method = Method::kGet,
                .pattern = "/shell",
                .access = Access::kToken,
                .doc = {.operation_id = "shell", .summary = "For the test.", .responses = {{101, "Joined."}}},
                .handler = [this](const Request& request, const Responder& responder) {
                  responder.relay({std::exchange(offered, nullptr), std::string(request.header("sec-websocket-key")),
                                   "v1.shell.berth", [this](std::string_view last) { told.set(last); }});
                }});
    Authenticator authenticator;
    REQUIRE(authenticator.add(kRelayToken, {.name = "ann", .user = "ann"}));
    ServerOptions options;
    options.timeouts.heartbeat = heartbeat;
    auto started = Server::start(options, std::move(router), std::move(authenticator));
    REQUIRE(started);
    server = std::move(*started);
  }
  ~RelayWorld() {
    server.reset();
    ::close(shell);
  }

  // Sends the request, with what the client sends behind it at once.
  TestSocket join(const std::string& early = {}) const {
    TestSocket client(server->port());
    REQUIRE(client.send(std::string("GET /shell HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ") + kRelayToken +
                        "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n" +
                        early));
    const Answer answer = client.answer(true);
    CHECK_EQ(answer.status, 101);
    CHECK(answer.has_header("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
    CHECK(answer.has_header("Sec-WebSocket-Protocol: v1.shell.berth\r\n"));
    return client;
  }
  // What the shell gets next, so many bytes of it; fewer at its end.
  std::string shell_gets(std::size_t size) const {
    std::string got(size, '\0');
    std::size_t count = 0;
    while (count < size) {
      const ssize_t more = ::recv(shell, got.data() + count, size - count, 0);
      if (more <= 0) break;
      count += static_cast<std::size_t>(more);
    }
    got.resize(count);
    return got;
  }
  void shell_says(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t count = ::send(shell, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      REQUIRE(count > 0);
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
  }

  int shell = -1;
  std::shared_ptr<const int> offered;
  RelayTold told;
  std::unique_ptr<Server> server;
};

std::string input_frame(std::string_view bytes) {
  return web_socket_frame(WebSocketKind::kBinary, shell_message(ShellChannel::kInput, bytes), kMask);
}
std::string output_frame(std::string_view bytes) {
  return web_socket_frame(WebSocketKind::kBinary, shell_message(ShellChannel::kOutput, bytes));
}

}  // namespace

TEST_CASE("relay: messages pass both ways, those sent with the request too, and the end of the stream closes") {
  RelayWorld world;
  TestSocket client = world.join(input_frame("early"));
  const std::string early = framed(shell_message(ShellChannel::kInput, "early"));
  CHECK_EQ(world.shell_gets(early.size()), early);
  world.shell_says(framed(shell_message(ShellChannel::kOutput, "hello")));
  CHECK(client.receive_until(output_frame("hello")));
  world.shell_says(framed(shell_message(ShellEnd{3, {}})));
  ::shutdown(world.shell, SHUT_RDWR);
  CHECK(client.receive_until(web_socket_frame(WebSocketKind::kClose, close_bytes(kCloseNormal))));
  CHECK(client.send(web_socket_frame(WebSocketKind::kClose, close_bytes(kCloseNormal), kMask)));
  CHECK_EQ(world.told.wait(), shell_message(ShellEnd{3, {}}));
}

TEST_CASE("relay: a client that goes away ends the stream, whatever it said last") {
  for (const std::string& last : {std::string(), web_socket_frame(WebSocketKind::kClose, {}, kMask)}) {
    RelayWorld world;
    {
      TestSocket client = world.join();
      if (!last.empty()) CHECK(client.send(last));
    }
    CHECK_EQ(world.shell_gets(1), "");
    CHECK_EQ(world.told.wait(), "");
  }
}

TEST_CASE("relay: a ping is answered, and a client that answers none is gone") {
  RelayWorld world(std::chrono::milliseconds(100));
  TestSocket client = world.join(web_socket_frame(WebSocketKind::kPing, "are you there", kMask));
  CHECK(client.receive_until(web_socket_frame(WebSocketKind::kPong, "are you there")));
  CHECK(client.receive_until(web_socket_frame(WebSocketKind::kPing, {})));
  CHECK_EQ(world.shell_gets(1), "");
}

TEST_CASE("relay: what breaks the protocol ends it") {
  const std::string cases[] = {web_socket_frame(WebSocketKind::kBinary, "\x02x"),          // without a mask
                               web_socket_frame(WebSocketKind::kText, "x", kMask),         // text
                               web_socket_frame(WebSocketKind::kBinary, "\x07{}", kMask),  // a begin
                               web_socket_frame(WebSocketKind::kBinary, "\x09", kMask),    // no channel
                               web_socket_frame(WebSocketKind::kBinary, {}, kMask),        // empty
                               web_socket_frame(WebSocketKind::kBinary, std::string(kMostShellBytes + 1, '\0'), kMask)};
  for (const std::string& wrong : cases) {
    RelayWorld world;
    TestSocket client = world.join(wrong);
    CHECK(client.receive_until("\x03\xea"));  // 1002
    CHECK_EQ(world.shell_gets(1), "");
  }
}

TEST_CASE("relay: much passes both ways at once while neither side reads at first") {
  RelayWorld world;
  TestSocket client = world.join();
  const std::string part(16'000, 'x');
  constexpr std::size_t kParts = 200;
  std::thread typist([&] {
    for (std::size_t i = 0; i < kParts; ++i) client.send(input_frame(part));
  });
  std::thread printer([&] {
    for (std::size_t i = 0; i < kParts; ++i) world.shell_says(framed(shell_message(ShellChannel::kOutput, part)));
  });
  const std::size_t framed_size = framed(shell_message(ShellChannel::kInput, part)).size();
  CHECK_EQ(world.shell_gets(kParts * framed_size).size(), kParts * framed_size);
  typist.join();
  std::size_t seen = 0;
  while (client.received().size() < kParts * output_frame(part).size() && client.receive())
    seen = client.received().size();
  CHECK_EQ(seen, kParts * output_frame(part).size());
  printer.join();
}

TEST_CASE("relay: a server that stops says so to the client, and the stream ends") {
  RelayWorld world;
  TestSocket client = world.join();
  std::thread stop([&] { world.server->stop(std::chrono::milliseconds(5'000)); });
  CHECK(client.receive_until("the server is stopping"));
  client.end_sending();
  stop.join();
  CHECK_EQ(world.shell_gets(1), "");
}

}  // namespace berth::http
