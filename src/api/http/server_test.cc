#include "api/http/server.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "api/http/test_socket.h"

namespace berth::http {
namespace {

using std::chrono::milliseconds;

const std::string kAnnsToken(64, 'a');
const std::string kAuthorization = "Authorization: Bearer " + kAnnsToken + "\r\n";

// What the handlers leave for the test to answer, from a thread of its choice.
struct Desk {
  std::mutex mutex;
  std::condition_variable arrived;
  std::vector<Responder> responders;
  std::vector<Stream> streams;
  std::atomic<int> streams_closed = 0;
  bool gate_open = false;
  int at_gate = 0;

  // Handlers and steps that hang until the test opens the gate.
  void hang() {
    std::unique_lock lock(mutex);
    ++at_gate;
    arrived.notify_all();
    arrived.wait(lock, [this] { return gate_open; });
  }
  void wait_at_gate(int count) {
    std::unique_lock lock(mutex);
    arrived.wait(lock, [&] { return at_gate >= count; });
  }
  void open_gate() {
    const std::lock_guard lock(mutex);
    gate_open = true;
    arrived.notify_all();
  }

  void keep(const Responder& responder) {
    const std::lock_guard lock(mutex);
    responders.push_back(responder);
    arrived.notify_all();
  }
  Responder take() {
    std::unique_lock lock(mutex);
    arrived.wait(lock, [this] { return !responders.empty(); });
    Responder responder = std::move(responders.back());
    responders.pop_back();
    return responder;
  }
  void keep(const Stream& stream) {
    stream.on_close([this] { ++streams_closed; });
    const std::lock_guard lock(mutex);
    streams.push_back(stream);
    arrived.notify_all();
  }
  std::vector<Stream> wait_for_streams(std::size_t count) {
    std::unique_lock lock(mutex);
    arrived.wait(lock, [&] { return streams.size() >= count; });
    return streams;
  }
};

Route route(Method method, std::string pattern, Handler handler, std::vector<ParameterDoc> parameters = {}) {
  return {.method = method,
          .pattern = pattern,
          .access = Access::kToken,
          .doc = {.operation_id = name_of(method) + pattern,
                  .summary = "For the test.",
                  .responses = {{.status = 200, .description = "Done."}},
                  .parameters = std::move(parameters)},
          .handler = std::move(handler)};
}

Router test_router(Desk& desk) {
  Router router;
  Route health = route(Method::kGet, "/health",
                       [](const Request&, const Responder& responder) { responder.send({.body = "{\"ok\":true}"}); });
  health.access = Access::kPublic;
  router.add(health);
  router.add(route(Method::kGet, "/who/{name}",
                   [](const Request& request, const Responder& responder) {
                     responder.send({.body = request.subject + " asks for " + request.path_params.at("name")});
                   },
                   {path_parameter("name", "Any.")}));
  Route echo = route(Method::kPost, "/echo", [](const Request& request, const Responder& responder) {
    responder.send({.content_type = "text/plain", .body = request.body});
  });
  echo.doc.request_schema = "Any";
  router.add(echo);
  router.add(
      route(Method::kGet, "/later", [&desk](const Request&, const Responder& responder) { desk.keep(responder); }));
  router.add(route(Method::kGet, "/dropped", [](const Request&, const Responder&) {}));
  router.add(route(Method::kGet, "/throws",
                   [](const Request&, const Responder&) { throw std::runtime_error("the secret reason"); }));
  router.add(route(Method::kGet, "/split", [](const Request&, const Responder& responder) {
    responder.send({.headers = {{"X-Evil", "a\r\nSet-Cookie: b"}}, .body = "x"});
  }));
  router.add(route(Method::kGet, "/large", [](const Request&, const Responder& responder) {
    responder.send({.body = std::string(8 * 1024 * 1024, 'x')});
  }));
  Route long_read = route(Method::kGet, "/long", [&desk](const Request&, const Responder& responder) {
    desk.hang();
    responder.send({.body = "long"});
  });
  long_read.threads = Threads::kLongReads;
  router.add(long_read);
  Route short_read = route(Method::kGet, "/short",
                           [](const Request&, const Responder& responder) { responder.send({.body = "short"}); });
  short_read.threads = Threads::kReads;
  router.add(short_read);
  Route events = route(Method::kGet, "/events", [&desk](const Request& request, const Responder& responder) {
    const Stream stream = responder.stream(request.stream_format);
    stream.send({.id = "0", .data = "{\"resumed_after\":\"" + request.last_event_id + "\"}"});
    desk.keep(stream);
  });
  events.doc.streamed_schema = "Event";
  router.add(events);
  return router;
}

struct Fixture {
  explicit Fixture(ServerOptions options = {}) {
    Authenticator authenticator;
    REQUIRE(authenticator.add(kAnnsToken, {.name = "ann", .user = "ann"}));
    options.on_fault = [this](const std::string& fault) {
      const std::lock_guard lock(desk.mutex);
      faults.push_back(fault);
    };
    auto started = Server::start(std::move(options), test_router(desk), std::move(authenticator));
    REQUIRE(started);
    server = std::move(*started);
  }
  ~Fixture() {
    desk.open_gate();
    desk.streams.clear();
    desk.responders.clear();
  }
  TestSocket connect() const { return TestSocket(server->port()); }

  Desk desk;
  std::vector<std::string> faults;
  std::unique_ptr<Server> server;
};

std::string get(const std::string& path, const std::string& headers = kAuthorization) {
  return "GET " + path + " HTTP/1.1\r\nHost: x\r\n" + headers + "\r\n";
}

std::string post_echo(const std::string& framing_and_body) {
  return "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" + kAuthorization + framing_and_body;
}

// The whole of what the server says to these bytes, until it closes or is silent for a moment.
std::vector<int> statuses_for(const Fixture& fixture, std::string_view bytes) {
  TestSocket socket = fixture.connect();
  socket.send(bytes);
  socket.end_sending();
  std::vector<int> statuses;
  while (true) {
    const Answer answer = socket.answer();
    if (answer.status == 0) return statuses;
    statuses.push_back(answer.status);
  }
}

TEST_CASE("server: answers, keeps the connection, and takes pipelined requests in their order") {
  const Fixture fixture;
  TestSocket socket = fixture.connect();
  socket.send(get("/who/one") + get("/who/two%2Fthree") + get("/health", "") +
              post_echo("Content-Length: 4\r\n\r\nbody") + get("/who/last"));
  CHECK(socket.answer().body == "ann asks for one");
  CHECK(socket.answer().body == "ann asks for two/three");
  CHECK(socket.answer().body == "{\"ok\":true}");
  CHECK(socket.answer().body == "body");
  CHECK(socket.answer().body == "ann asks for last");
  CHECK(fixture.server->counters().requests == 5);
  CHECK(fixture.server->counters().connections_open == 1);
}

TEST_CASE("server: a request may come one byte at a time") {
  const Fixture fixture;
  TestSocket socket = fixture.connect();
  const std::string bytes =
      "\r\n" + post_echo("Transfer-Encoding: chunked\r\n\r\n2;x=y\r\nab\r\n1\r\nc\r\n0\r\nT: v\r\n\r\n");
  for (const char byte : bytes) socket.send({&byte, 1});
  CHECK(socket.answer().body == "abc");
  socket.send(get("/health"));
  CHECK(socket.answer().status == 200);
}

TEST_CASE("server: HEAD has the head of GET and no body; OPTIONS and 405 say what is allowed") {
  const Fixture fixture;
  TestSocket socket = fixture.connect();
  socket.send("HEAD /who/me HTTP/1.1\r\nHost: x\r\n" + kAuthorization + "\r\n" + get("/health"));
  const Answer head = socket.answer(true);
  CHECK(head.status == 200);
  CHECK(head.has_header("Content-Length: 15\r\n"));
  CHECK(socket.answer().body == "{\"ok\":true}");
  socket.send("OPTIONS /echo HTTP/1.1\r\nHost: x\r\n" + kAuthorization + "\r\n");
  CHECK(socket.answer().has_header("Allow: POST, OPTIONS\r\n"));
  socket.send("DELETE /echo HTTP/1.1\r\nHost: x\r\n" + kAuthorization + "\r\n");
  const Answer refused = socket.answer();
  CHECK(refused.status == 405);
  CHECK(refused.has_header("Allow: POST, OPTIONS\r\n"));
  CHECK(refused.body.find("\"instance\":\"/echo\"") != std::string::npos);
}

TEST_CASE("server: HTTP/1.0 and Connection: close end the connection after the answer") {
  const Fixture fixture;
  for (const std::string& request :
       {std::string("GET /health HTTP/1.0\r\n\r\n"), get("/health", "Connection: close\r\n")}) {
    TestSocket socket = fixture.connect();
    socket.send(request);
    const Answer answer = socket.answer();
    CHECK(answer.status == 200);
    CHECK(answer.has_header("Connection: close\r\n"));
    CHECK(socket.is_closed_by_server());
  }
}

TEST_CASE("server: bodies are framed in one way only") {
  const Fixture fixture;
  struct Row {
    std::string bytes;
    std::vector<int> statuses;
  };
  const std::string chunked = "Transfer-Encoding: chunked\r\n\r\n";
  const std::string smuggled = get("/who/smuggled");
  const std::vector<Row> rows{
      {post_echo("Content-Length: 3\r\n\r\nabc"), {200}},
      {post_echo(chunked + "3\r\nabc\r\n0\r\n\r\n"), {200}},
      {post_echo(chunked + "3\r\nabc\r\n0\r\n\r\n") + smuggled, {200, 200}},
      {post_echo(chunked + "A\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n"), {200}},
      {post_echo(chunked + "0\r\n\r\n"), {200}},
      // Two framings, or none that is certain: nothing after it is read as a request.
      {post_echo("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n") + smuggled, {400}},
      {post_echo("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n") + smuggled, {400}},
      {post_echo("Content-Length: 3\r\nContent-Length: 0\r\n\r\nabc") + smuggled, {400}},
      {post_echo("Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n") + smuggled, {501}},
      {post_echo("Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n") + smuggled, {400}},
      {post_echo("Transfer-Encoding: identity\r\nContent-Length: 3\r\n\r\nabc") + smuggled, {501}},
      // Chunk sizes.
      {post_echo(chunked + "-2\r\nab\r\n0\r\n\r\n") + smuggled, {400}},
      {post_echo(chunked + "+2\r\nab\r\n0\r\n\r\n") + smuggled, {400}},
      {post_echo(chunked + "0x2\r\nab\r\n0\r\n\r\n") + smuggled, {400}},
      {post_echo(chunked + "2 \r\nab\r\n0\r\n\r\n") + smuggled, {400}},
      {post_echo(chunked + "\r\nab\r\n0\r\n\r\n") + smuggled, {400}},
      {post_echo(chunked + "g\r\nab\r\n0\r\n\r\n") + smuggled, {400}},
      {post_echo(chunked + "2\nab\n0\n\n") + smuggled, {400}},
      {post_echo(chunked + "2\r\nabc\r\n0\r\n\r\n") + smuggled, {400}},
      {post_echo(chunked + "12345678901234567\r\nab\r\n0\r\n\r\n") + smuggled, {400}},
      {post_echo(chunked + "ffffffffffffffff\r\nab\r\n0\r\n\r\n") + smuggled, {413}},
      {post_echo(chunked + "2;" + std::string(1'000'000, 'x') + "\r\nab\r\n0\r\n\r\n") + smuggled, {400}},
      // A body that never comes whole.
      {post_echo("Content-Length: 30\r\n\r\nabc"), {}},
      {post_echo(chunked + "3\r\nab"), {}},
      // Refused on the head alone; what follows is not a request.
      {post_echo("Content-Length: 2000000\r\n\r\n") + smuggled, {413}},
      {"GET /who/x HTTP/1.1\r\nHost: x\r\n" + kAuthorization + "Content-Length: 3\r\n\r\nabc" + smuggled, {400}},
      {"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n" + smuggled, {400}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.bytes.substr(0, 400));
    CHECK(statuses_for(fixture, row.bytes) == row.statuses);
  }
}

TEST_CASE("server: a body over the limit is refused whether announced or not, and the answer arrives") {
  const Fixture fixture;
  const std::string large(3 * 1024 * 1024, 'x');
  CHECK(statuses_for(fixture, post_echo("Content-Length: " + std::to_string(large.size()) + "\r\n\r\n" + large)) ==
        std::vector{413});
  CHECK(statuses_for(fixture, post_echo("Transfer-Encoding: chunked\r\n\r\n300000\r\n" + large + "\r\n0\r\n\r\n")) ==
        std::vector{413});
  const std::string fits(1024 * 1024, 'x');
  CHECK(statuses_for(fixture, post_echo("Content-Length: " + std::to_string(fits.size()) + "\r\n\r\n" + fits)) ==
        std::vector{200});
}

TEST_CASE("server: Expect: 100-continue is answered before the body, or with the refusal instead") {
  const Fixture fixture;
  TestSocket socket = fixture.connect();
  socket.send(post_echo("Expect: 100-continue\r\nContent-Length: 3\r\n\r\n"));
  CHECK(socket.answer().status == 100);
  socket.send("abc");
  CHECK(socket.answer().body == "abc");
  TestSocket refused = fixture.connect();
  refused.send("POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
  CHECK(refused.answer().status == 401);
  CHECK(refused.is_closed_by_server());
}

TEST_CASE("server: an Upgrade is ignored") {
  const Fixture fixture;
  CHECK(statuses_for(fixture, get("/health", "Connection: Upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMA\r\n")) ==
        std::vector{200});
}

TEST_CASE("server: a token is needed for all but public routes") {
  const Fixture fixture;
  CHECK(statuses_for(fixture, get("/health", "")) == std::vector{200});
  for (const std::string& headers :
       std::vector<std::string>{"", "Authorization: Bearer " + std::string(64, 'b') + "\r\n",
                                "Authorization: Basic " + kAnnsToken + "\r\n", "X-Token: " + kAnnsToken + "\r\n"}) {
    TestSocket socket = fixture.connect();
    socket.send(get("/who/me", headers));
    const Answer answer = socket.answer();
    CHECK(answer.status == 401);
    CHECK(answer.has_header("WWW-Authenticate: Bearer"));
    CHECK(answer.body.find(kAnnsToken) == std::string::npos);
  }
  CHECK(statuses_for(fixture, get("/who/me", kAuthorization + kAuthorization)) == std::vector{400});
  CHECK(statuses_for(fixture, get("/who/me?token=" + kAnnsToken, "")) == std::vector{401});
}

TEST_CASE("server: answers may come later and from another thread, once") {
  Fixture fixture;
  TestSocket socket = fixture.connect();
  socket.send(get("/later"));
  const Responder responder = fixture.desk.take();
  std::thread([&responder] {
    CHECK(responder.send({.body = "first"}));
    CHECK_FALSE(responder.send({.body = "second"}));
    CHECK_FALSE(responder.stream(StreamFormat::kNdjson).open());
  }).join();
  CHECK(socket.answer().body == "first");
  socket.send(get("/health"));
  CHECK(socket.answer().body == "{\"ok\":true}");
}

TEST_CASE("server: a dropped responder, a thrown exception and an unsendable header become a plain 500") {
  Fixture fixture;
  TestSocket socket = fixture.connect();
  for (const std::string& path : std::vector<std::string>{"/dropped", "/throws", "/split"}) {
    CAPTURE(path);
    socket.send(get(path));
    const Answer answer = socket.answer();
    CHECK(answer.status == 500);
    CHECK(answer.has_header("application/problem+json"));
    CHECK(answer.body.find("secret") == std::string::npos);
    CHECK_FALSE(answer.has_header("Set-Cookie"));
  }
  const std::lock_guard lock(fixture.desk.mutex);
  CHECK(fixture.faults.size() == 2);
}

TEST_CASE("server: an answer that takes too long is a 503 with Retry-After, and comes in vain later") {
  ServerOptions options;
  options.timeouts.handler = milliseconds(60);
  Fixture fixture(options);
  TestSocket socket = fixture.connect();
  socket.send(get("/later"));
  const Answer answer = socket.answer();
  CHECK(answer.status == 503);
  CHECK(answer.has_header("Retry-After: 1\r\n"));
  CHECK_FALSE(fixture.desk.take().send({.body = "late"}));
  socket.send(get("/health"));
  CHECK(socket.answer().body == "{\"ok\":true}");
  CHECK(fixture.server->counters().timeouts == 1);
}

TEST_CASE("server: slow heads and bodies are cut off with 408, silent connections without a word") {
  ServerOptions options;
  options.timeouts.head = milliseconds(80);
  options.timeouts.body = milliseconds(80);
  options.timeouts.idle = milliseconds(80);
  const Fixture fixture(options);
  TestSocket silent = fixture.connect();
  TestSocket slow_head = fixture.connect();
  TestSocket slow_body = fixture.connect();
  TestSocket idle = fixture.connect();
  slow_head.send("GET / HTTP/1.1\r\nHo");
  slow_body.send(post_echo("Content-Length: 10\r\n\r\nabc"));
  idle.send(get("/health"));
  CHECK(slow_head.answer().status == 408);
  CHECK(slow_head.is_closed_by_server());
  CHECK(slow_body.answer().status == 408);
  CHECK(slow_body.is_closed_by_server());
  CHECK(silent.is_closed_by_server());
  CHECK(idle.answer().status == 200);
  CHECK(idle.is_closed_by_server());
}

TEST_CASE("server: a reader that takes nothing of a large answer is dropped, others are served meanwhile") {
  ServerOptions options;
  options.io_threads = 1;
  options.timeouts.write = milliseconds(150);
  const Fixture fixture(options);
  TestSocket slow(fixture.server->port(), 4096);
  slow.send(get("/large"));
  TestSocket other = fixture.connect();
  while (fixture.server->counters().timeouts == 0) {
    other.send(get("/health"));
    REQUIRE(other.answer().status == 200);
  }
  // The connection is counted as gone once it is closed, a moment after its time was found to be over.
  for (int i = 0; i < 10'000 && fixture.server->counters().connections_open != 1; ++i) {
    other.send(get("/health"));
    REQUIRE(other.answer().status == 200);
  }
  CHECK(fixture.server->counters().connections_open == 1);
}

TEST_CASE("server: connections over the limit get a 503, and room appears when others go") {
  ServerOptions options;
  options.limits.connections = 4;
  const Fixture fixture(options);
  std::vector<TestSocket> sockets;
  for (int i = 0; i < 4; ++i) {
    sockets.push_back(fixture.connect());
    sockets.back().send(get("/who/me"));
    REQUIRE(sockets.back().answer().status == 200);
  }
  {
    TestSocket refused = fixture.connect();
    refused.send(get("/health"));
    CHECK(refused.answer().status == 503);
    CHECK(refused.is_closed_by_server());
  }
  CHECK(fixture.server->counters().connections_refused == 1);
  sockets.clear();
  while (fixture.server->counters().connections_open > 0) std::this_thread::yield();
  TestSocket again = fixture.connect();
  again.send(get("/health"));
  CHECK(again.answer().status == 200);
}

TEST_CASE("server: connections without a token have their own share, and the oldest of them end first") {
  ServerOptions options;
  options.io_threads = 1;
  options.limits.unauthenticated = 4;
  const Fixture fixture(options);
  TestSocket member = fixture.connect();
  member.send(get("/who/me"));
  REQUIRE(member.answer().status == 200);
  std::vector<TestSocket> idle;
  for (int i = 0; i < 4; ++i) idle.push_back(fixture.connect());
  TestSocket public_only = fixture.connect();
  public_only.send(get("/health", ""));
  CHECK(public_only.answer().status == 200);
  CHECK(idle[0].is_closed_by_server());
  TestSocket wrong = fixture.connect();
  wrong.send(get("/who/me", ""));
  CHECK(wrong.answer().status == 401);
  CHECK(idle[1].is_closed_by_server());
  for (TestSocket* kept : {&idle[2], &member, &public_only}) {
    kept->send(get("/who/me"));
    CHECK(kept->answer().status == 200);
  }
  CHECK(fixture.server->counters().unauthenticated_closed == 2);
  CHECK(fixture.server->counters().connections_refused == 0);
}

TEST_CASE("server: idle connections without a token lock nobody out") {
  ServerOptions options;
  options.limits.connections = 40;
  options.limits.unauthenticated = 30;
  const Fixture fixture(options);
  std::vector<TestSocket> members;
  for (int i = 0; i < 20; ++i) {
    members.push_back(fixture.connect());
    members.back().send(get("/who/me"));
    REQUIRE(members.back().answer().status == 200);
  }
  std::vector<TestSocket> idle;
  for (int i = 0; i < 120; ++i) idle.push_back(fixture.connect());
  for (int i = 0; i < 10; ++i) {
    members.push_back(fixture.connect());
    members.back().send(get("/who/me"));
    CHECK(members.back().answer().status == 200);
  }
  for (TestSocket& member : members) {
    member.send(get("/who/me"));
    CHECK(member.answer().status == 200);
  }
}

TEST_CASE("server: long reads that hang hold up neither short reads nor anything else") {
  ServerOptions options;
  options.io_threads = 1;
  Fixture fixture(options);
  std::vector<TestSocket> readers;
  for (int i = 0; i < 6; ++i) {
    readers.push_back(fixture.connect());
    readers.back().send(get("/long"));
  }
  fixture.desk.wait_at_gate(2);
  TestSocket other = fixture.connect();
  other.send(post_echo("Content-Length: 4\r\n\r\nbody") + get("/short"));
  CHECK(other.answer().body == "body");
  CHECK(other.answer().body == "short");
  fixture.desk.open_gate();
  for (TestSocket& reader : readers) CHECK(reader.answer().body == "long");
}

TEST_CASE("server: a read whose client was told that it takes too long is not begun") {
  ServerOptions options;
  options.io_threads = 1;
  options.timeouts.handler = milliseconds(100);
  Fixture fixture(options);
  std::vector<TestSocket> readers;
  for (int i = 0; i < 6; ++i) {
    readers.push_back(fixture.connect());
    readers.back().send(get("/long"));
  }
  for (TestSocket& reader : readers) CHECK(reader.answer().status == 503);
  fixture.desk.open_gate();
  TestSocket late = fixture.connect();
  late.send(get("/long"));
  CHECK(late.answer().status != 0);
  CHECK(fixture.desk.at_gate <= 3);  // the two that began, and the late one
}

TEST_CASE("stream: a step that hangs holds up no request") {
  ServerOptions options;
  options.io_threads = 1;
  Fixture fixture(options);
  TestSocket watcher = fixture.connect();
  watcher.send(get("/events"));
  fixture.desk.wait_for_streams(1).front().on_drained([&fixture] { fixture.desk.hang(); });
  fixture.desk.wait_at_gate(1);
  TestSocket other = fixture.connect();
  other.send(post_echo("Content-Length: 4\r\n\r\nbody") + get("/short"));
  CHECK(other.answer().body == "body");
  CHECK(other.answer().body == "short");
}

TEST_CASE("server: no bytes whatever stop it") {
  const Fixture fixture;
  const std::string request = post_echo("Transfer-Encoding: chunked\r\n\r\n3;a=\"b\"\r\nabc\r\n0\r\nT: v\r\n\r\n");
  std::uint64_t state = 1;
  const auto random = [&state] { return state = state * 6364136223846793005u + 1442695040888963407u, state >> 33; };
  for (int round = 0; round < 300; ++round) {
    std::string bytes = request + get("/health");
    for (std::uint64_t edits = random() % 4; edits > 0; --edits) {
      bytes[random() % bytes.size()] = static_cast<char>(random() % 256);
    }
    bytes.resize(random() % bytes.size());
    TestSocket socket = fixture.connect();
    socket.send(bytes);
    if (round % 3 == 0) socket.end_sending();
  }
  CHECK(statuses_for(fixture, get("/health")) == std::vector{200});
}

TEST_CASE("stream: server-sent events with ids, resumed by Last-Event-ID, ended by the writer") {
  Fixture fixture;
  TestSocket socket = fixture.connect();
  socket.send(get("/events", kAuthorization + "Last-Event-ID: 41\r\nAccept: text/event-stream\r\n"));
  const Stream stream = fixture.desk.wait_for_streams(1).front();
  CHECK(stream.send({.id = "42", .name = "job", .data = "{\"a\":1}\n{\"b\":2}"}));
  stream.close();
  CHECK_FALSE(stream.send({.id = "43", .data = "{}"}));
  REQUIRE(socket.receive_until("\r\n0\r\n\r\n"));
  CHECK(socket.received().find("Content-Type: text/event-stream\r\n") != std::string::npos);
  CHECK(socket.received().find("id: 0\ndata: {\"resumed_after\":\"41\"}\n\n") != std::string::npos);
  CHECK(socket.received().find("id: 42\nevent: job\ndata: {\"a\":1}\ndata: {\"b\":2}\n\n") != std::string::npos);
  CHECK_FALSE(socket.receive());
}

TEST_CASE("stream: NDJSON by Accept; HTTP/1.0 readers get it without chunks; heartbeats come") {
  ServerOptions options;
  options.timeouts.heartbeat = milliseconds(60);
  Fixture fixture(options);
  TestSocket socket = fixture.connect();
  socket.send("GET /events HTTP/1.0\r\nAccept: application/x-ndjson\r\n" + kAuthorization + "\r\n");
  REQUIRE(socket.receive_until("\r\n\r\n{\"resumed_after\":\"\"}\n\n\n"));  // the event and two heartbeats
  CHECK(socket.received().find("Content-Type: application/x-ndjson\r\n") != std::string::npos);
  CHECK(socket.received().find("chunked") == std::string::npos);
  CHECK(fixture.desk.wait_for_streams(1).size() == 1);
  fixture.desk.streams.clear();  // the last copy of the Stream: its end
  while (socket.receive()) {
  }
  CHECK(fixture.desk.streams_closed == 1);
}

TEST_CASE("stream: a slow reader is disconnected, and the others get everything") {
  ServerOptions options;
  options.limits.stream_pending_bytes = 64 * 1024;
  Fixture fixture(options);
  TestSocket slow(fixture.server->port(), 4096);
  TestSocket quick = fixture.connect();
  slow.send(get("/events"));
  fixture.desk.wait_for_streams(1);
  quick.send(get("/events"));
  const auto streams = fixture.desk.wait_for_streams(2);
  const Chunk chunk = encode({.data = std::string(8 * 1024, 'x')}, StreamFormat::kServerSentEvents);
  int sent = 0;
  std::size_t received = 0;
  while (streams[0].send(chunk)) {
    REQUIRE(streams[1].send(chunk));
    ++sent;
    REQUIRE(sent < 10'000);
    while (streams[1].pending_bytes() > 16 * 1024) quick.receive(1);
  }
  streams[1].close();
  REQUIRE(quick.receive_until("\r\n0\r\n\r\n"));
  for (std::size_t at = quick.received().find("data: x"); at != std::string::npos; ++received) {
    at = quick.received().find("data: x", at + 1);
  }
  CHECK(received == static_cast<std::size_t>(sent));
  while (fixture.server->counters().streams_dropped == 0) std::this_thread::yield();
  CHECK(fixture.server->counters().streams_dropped == 1);
}

TEST_CASE("stream: a long history is sent piece by piece from on_drained") {
  Fixture fixture;
  TestSocket socket = fixture.connect();
  socket.send(get("/events"));
  const Stream stream = fixture.desk.wait_for_streams(1).front();
  const Chunk page = encode({.data = std::string(60 * 1024, 'x')}, StreamFormat::kServerSentEvents);
  const auto pages = std::make_shared<std::atomic<int>>(0);
  const auto sink = std::make_shared<Stream>(stream);
  stream.on_drained([pages, page, weak = std::weak_ptr<Stream>(sink)] {
    const auto alive = weak.lock();
    if (alive == nullptr) return;
    if (++*pages > 50) return alive->close();
    CHECK(alive->send(page));
  });
  REQUIRE(socket.receive_until("\r\n0\r\n\r\n"));
  CHECK(*pages == 51);
  CHECK(socket.received().size() > 50 * page->size());
}

TEST_CASE("stream: 200 watchers all see each event, and their leaving is noticed") {
  Fixture fixture;
  std::vector<TestSocket> watchers;
  for (int i = 0; i < 200; ++i) {
    watchers.push_back(fixture.connect());
    watchers.back().send(get("/events"));
  }
  const auto streams = fixture.desk.wait_for_streams(200);
  CHECK(fixture.server->counters().streams_open == 200);
  for (int event = 1; event <= 20; ++event) {
    const Chunk chunk = encode({.id = std::to_string(event), .data = "{}"}, StreamFormat::kServerSentEvents);
    for (const Stream& stream : streams) CHECK(stream.send(chunk));
  }
  for (TestSocket& watcher : watchers) {
    REQUIRE(watcher.receive_until("id: 20\n"));
    std::size_t at = 0;
    for (int event = 1; event <= 20; ++event) {
      at = watcher.received().find("id: " + std::to_string(event) + "\n", at);
      REQUIRE(at != std::string::npos);
    }
  }
  watchers.clear();
  while (fixture.desk.streams_closed < 200) std::this_thread::yield();
  CHECK(fixture.server->counters().streams_open == 0);
  for (const Stream& stream : streams) CHECK_FALSE(stream.open());
}

TEST_CASE("stream: there is a limit of streams below that of connections") {
  ServerOptions options;
  options.limits.streams = 1;
  Fixture fixture(options);
  TestSocket first = fixture.connect();
  TestSocket second = fixture.connect();
  first.send(get("/events"));
  fixture.desk.wait_for_streams(1);
  second.send(get("/events"));
  CHECK(second.answer().status == 503);
  second.send(get("/health"));
  CHECK(second.answer().status == 200);
}

TEST_CASE("stop: requests in flight finish, streams end, idle connections close, nobody new comes in") {
  Fixture fixture;
  TestSocket idle = fixture.connect();
  TestSocket waiting = fixture.connect();
  TestSocket watcher = fixture.connect();
  idle.send(get("/health"));
  REQUIRE(idle.answer().status == 200);
  waiting.send(get("/later"));
  const Responder responder = fixture.desk.take();
  watcher.send(get("/events"));
  fixture.desk.wait_for_streams(1);
  std::thread stopping([&fixture] { fixture.server->stop(milliseconds(5000)); });
  CHECK(idle.is_closed_by_server());
  CHECK(watcher.receive_until("\r\n0\r\n\r\n"));
  CHECK(responder.send({.body = "done"}));
  const Answer answer = waiting.answer();
  CHECK(answer.body == "done");
  CHECK(answer.has_header("Connection: close\r\n"));
  CHECK(waiting.is_closed_by_server());
  { TestSocket leaving = std::move(waiting); }
  { TestSocket leaving = std::move(watcher); }
  stopping.join();
  CHECK_FALSE(fixture.connect().connected());
}

TEST_CASE("stop: what outlasts the grace is cut off, and late answers and events are harmless") {
  Fixture fixture;
  TestSocket waiting = fixture.connect();
  TestSocket watcher(fixture.server->port(), 4096);
  waiting.send(get("/later"));
  const Responder responder = fixture.desk.take();
  watcher.send(get("/events"));
  const Stream stream = fixture.desk.wait_for_streams(1).front();
  fixture.server->stop(milliseconds(20));
  CHECK_FALSE(responder.send({.body = "late"}));
  CHECK_FALSE(stream.send({.data = "{}"}));
  fixture.server.reset();
  CHECK_FALSE(responder.send({.body = "later still"}));
}

TEST_CASE("start: an address that cannot be had is named") {
  const Fixture fixture;
  ServerOptions taken;
  taken.port = fixture.server->port();
  const auto refused = Server::start(taken, Router(), Authenticator());
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("127.0.0.1:" + std::to_string(taken.port)) != std::string::npos);
  CHECK(refused.error().message.find("bind: Address already in use (a process of uid " + std::to_string(::geteuid()) +
                                     " listens there") != std::string::npos);
  ServerOptions nonsense;
  nonsense.address = "localhost";
  CHECK_FALSE(Server::start(nonsense, Router(), Authenticator()));
  ServerOptions six;
  six.address = "::1";
  if (const auto started = Server::start(six, Router(), Authenticator())) {
    CHECK((*started)->url() == "http://[::1]:" + std::to_string((*started)->port()));
  }
}

}  // namespace
}  // namespace berth::http
