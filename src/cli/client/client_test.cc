#include "cli/client/client.h"

#include <doctest/doctest.h>
#include <sys/fsuid.h>
#include <unistd.h>

#include "cli/client/canned_server.h"
#include "cli/client/event_parser.h"
#include "cli/client/plain_http.h"

namespace berth::client {
namespace {

std::string stream_of(const std::string& events, bool whole) {
  std::string answer = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
  char size[16];
  std::snprintf(size, sizeof size, "%zx", events.size());
  answer += std::string(size) + "\r\n" + events + "\r\n";
  return whole ? answer + "0\r\n\r\n" : answer;
}

Client client_of(const CannedServer& server) { return Client({.base_url = server.url() + "/", .token = "secret"}); }

TEST_CASE("client: sends its token, key and body, and returns what the server says") {
  CannedServer server(
      {answer_with("201 Created", "{\"id\":7}"), answer_with("200 OK", "x"), answer_with("404 Not Found", "")});
  Client client = client_of(server);
  const auto posted = client.post("/v1/jobs", "{\"a\":1}", "key-1");
  REQUIRE(posted);
  CHECK(posted->status == 201);
  CHECK(posted->ok());
  CHECK(posted->headers.at("x-kind") == "test");
  CHECK(posted->body == "{\"id\":7}");
  CHECK(client.get("/v1/jobs?limit=1")->body == "x");
  CHECK_FALSE(client.del("/v1/jobs/7")->ok());
  const auto requests = server.requests();
  REQUIRE(requests.size() == 3);
  CHECK(requests[0].starts_with("POST /v1/jobs HTTP/1.1\r\n"));
  CHECK(requests[0].find("Authorization: Bearer secret\r\n") != std::string::npos);
  CHECK(requests[0].find("Idempotency-Key: key-1\r\n") != std::string::npos);
  CHECK(requests[0].find("Content-Type: application/json\r\n") != std::string::npos);
  CHECK(requests[0].find("Content-Length: 7\r\n") != std::string::npos);
  CHECK(requests[1].starts_with("GET /v1/jobs?limit=1 HTTP/1.1\r\n"));
  CHECK(requests[2].starts_with("DELETE /v1/jobs/7 HTTP/1.1\r\n"));
}

TEST_CASE("client: told that it asks too often, it waits as it is told and asks again") {
  const auto busy = [](const char* seconds) {
    return "HTTP/1.1 429 Too Many Requests\r\nRetry-After: " + std::string(seconds) +
           "\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
  };
  CannedServer server({busy("0"), busy("0"), answer_with("200 OK", "x"), busy("3600")});
  Client client = client_of(server);
  CHECK(client.get("/v1/jobs")->body == "x");
  CHECK(server.requests().size() == 3);
  const auto refused = client.get("/v1/jobs");  // longer than it has patience
  REQUIRE(refused);
  CHECK(refused->status == 429);
  CHECK(error_of(*refused).code == ErrorCode::kUnavailable);
}

TEST_CASE(
    "client: over http within this machine the token goes to a server of root, of its own user or of a named one") {
  if (::geteuid() != 0) return;  // only root can be another user
  constexpr uid_t kJob = 52'000;
  ::setfsuid(kJob);  // the owner of the sockets that this thread makes
  CannedServer server(std::vector<std::string>(4, answer_with("200 OK", "x")));
  ::setfsuid(0);
  Client distrusting = client_of(server);
  const auto refused = distrusting.get("/v1/jobs");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kDenied);
  CHECK(refused.error().message.find("uid 52000 listens there, which is neither root nor you") != std::string::npos);
  const auto stream = client_of(server).stream("/v1/events", {}, [](const StreamEvent&) { return StreamStep::kStop; });
  REQUIRE_FALSE(stream);
  CHECK(stream.error().code == ErrorCode::kDenied);
  CHECK(Client({.base_url = server.url()}).get("/healthz")->body == "x");  // without a token there is nothing to lose
  Client named({.base_url = server.url(), .token = "secret", .server_users = {kJob}});
  CHECK(named.get("/v1/jobs")->body == "x");
  const auto requests = server.requests();
  REQUIRE(requests.size() == 4);
  for (std::size_t i = 0; i < 3; ++i) CHECK(requests[i].find("secret") == std::string::npos);
  CHECK(requests[3].find("secret") != std::string::npos);
}

TEST_CASE("client: only a host of this machine is asked without TLS") {
  for (const char* safe : {"http://127.0.0.1:6380", "http://localhost:6380", "http://127.9.9.9", "http://[::1]:6380",
                           "https://berth.example", "https://10.0.0.7", "unix:/run/berth/berth.sock"}) {
    CAPTURE(safe);
    CHECK_FALSE(crosses_network_unencrypted(safe));
  }
  for (const char* open : {"http://berth.example:6380", "http://10.0.0.7", "HTTP://10.0.0.7", "http://128.0.0.1",
                           "http://127.0.0.1@berth.example", "http://localhost.example", "http://[2001:db8::1]:6380",
                           "http://127.0.0.1.example"}) {
    CAPTURE(open);
    CHECK(crosses_network_unencrypted(open));
  }
}

TEST_CASE("client: a refused connection says how to start a server") {
  std::string url;
  {
    const CannedServer gone({});
    url = gone.url();
  }
  const auto reply = Client({.base_url = url, .token = ""}).get("/health");
  REQUIRE_FALSE(reply);
  CHECK(reply.error().code == ErrorCode::kUnavailable);
  CHECK(reply.error().message.find("cannot connect to " + url) != std::string::npos);
  CHECK(reply.error().message.find("berth serve") != std::string::npos);
}

TEST_CASE("client: a silent server, a nonsense address and a broken answer are errors that say so") {
  const CannedServer server({"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"});
  CHECK_FALSE(client_of(server).get("/"));
  CHECK(Client({.base_url = "ftp://127.0.0.1", .token = ""}).get("/").error().code == ErrorCode::kInvalid);
  const CannedServer never({});
  const auto late =
      Client({.base_url = never.url(), .token = "", .timeout = std::chrono::milliseconds(150)}).post("/", "{}");
  REQUIRE_FALSE(late);
  CHECK(late.error().message.find("may have been carried out") != std::string::npos);
}

TEST_CASE("client: a broken stream is resumed after its last event, without gap or repeat") {
  CannedServer server({stream_of(": hello\n\nid: 1\ndata: a\n\nid: 2\ndata: b\n\nid: 3\ndata: cut", false),
                       stream_of("id: 3\ndata: c\n\n", false), stream_of("id: 4\nevent: end\ndata: d\n\n", true)});
  Client client = client_of(server);
  std::string seen;
  const auto ended = client.stream("/v1/events", {.last_event_id = "0", .first_backoff = std::chrono::milliseconds(1)},
                                   [&seen](const StreamEvent& event) {
                                     seen += event.id + event.data + event.name + " ";
                                     return StreamStep::kContinue;
                                   });
  CHECK(ended);
  CHECK(seen == "1a 2b 3c 4dend ");
  const auto requests = server.requests();
  REQUIRE(requests.size() == 3);
  CHECK(requests[0].find("Last-Event-ID: 0\r\n") != std::string::npos);
  CHECK(requests[1].find("Last-Event-ID: 2\r\n") != std::string::npos);
  CHECK(requests[2].find("Last-Event-ID: 3\r\n") != std::string::npos);
}

TEST_CASE("client: a stream ends when the receiver has enough, and is given up when nobody comes back") {
  CannedServer server(
      {stream_of("id: 1\ndata: a\n\nid: 2\ndata: b\n\n", true), stream_of("id: 1\ndata: a\n\n", false)});
  Client client = client_of(server);
  int events = 0;
  const auto count = [&events](const StreamEvent&) {
    return ++events == 1 ? StreamStep::kStop : StreamStep::kContinue;
  };
  CHECK(client.stream("/v1/events", {}, count));
  CHECK(events == 1);
  CHECK_FALSE(client.stream("/v1/events", {.resume = false}, count));
  CHECK(events == 2);
}

TEST_CASE("client: a refused stream is the server's own words") {
  CannedServer server({answer_with("401 Unauthorized", "{\"detail\":\"no token\",\"code\":\"unauthenticated\"}")});
  const auto refused =
      client_of(server).stream("/v1/events", {}, [](const StreamEvent&) { return StreamStep::kContinue; });
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kDenied);
  CHECK(refused.error().message == "no token");
}

TEST_CASE("events: wherever the bytes are cut, the events are the same") {
  const std::string bytes = ": c\r\nid: 1\r\nevent: e\r\ndata: x\r\ndata: y\r\n\r\n\n\nid:2\ndata:z\n\nid: 3\n\n";
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    std::string seen;
    EventParser parser(false, [&seen](const StreamEvent& event) {
      seen += event.id + "|" + event.name + "|" + event.data + ";";
      return StreamStep::kContinue;
    });
    CHECK(parser.feed(bytes.substr(0, cut)));
    CHECK(parser.feed(bytes.substr(cut)));
    CHECK(seen == "1|e|x\ny;2||z;");
    CHECK(parser.last_id() == "3");
  }
}

TEST_CASE("events: NDJSON lines, blank ones left out") {
  std::string seen;
  EventParser parser(true, [&seen](const StreamEvent& event) {
    seen += event.data + ";";
    return StreamStep::kContinue;
  });
  CHECK(parser.feed("{\"a\":1}\n\n{\"b\""));
  CHECK(parser.feed(":2}\r\n{"));
  CHECK(seen == "{\"a\":1};{\"b\":2};");
}

TEST_CASE("client: path segments are encoded") {
  CHECK(encode_segment("research/nlp %é") == "research%2Fnlp%20%25%C3%A9");
}

}  // namespace
}  // namespace berth::client
