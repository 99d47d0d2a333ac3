// Who may open a shell in a job by the API, and what is written down of it.

#include <doctest/doctest.h>

#include "api/routes/fake_service.h"
#include "model/shell_message.h"

namespace berth::api {
namespace {

constexpr const char* kExec = "/v1/jobs/1/exec?command=%5B%22sh%22%2C%22-l%22%5D";

std::vector<http::Header> upgrade() {
  return {{"connection", "keep-alive, Upgrade"},
          {"upgrade", "websocket"},
          {"sec-websocket-version", "13"},
          {"sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="},
          {"sec-websocket-protocol", "other, v1.shell.berth"}};
}

// Ann's job 1 runs in queue a, and bob's job 2 in queue b/nlp, where lea is lead.
struct ShellWorld {
  ShellWorld() : client(service) {
    set_up_cluster(service);
    for (const auto& [user, queue] : {std::pair("ann", "a"), std::pair("bob", "b/nlp")})
      REQUIRE_EQ(client
                     .call({.method = "POST",
                            .target = "/v1/jobs",
                            .body = std::string(R"({"queue":")") + queue + R"(","gpus":1,"command":["x"]})",
                            .user = user})
                     .status,
                 201);
    for (const std::uint64_t job : {1UL, 2UL}) REQUIRE(service.run(ReportTaskStarted{JobId(job), 1, 0, 1}));
  }

  std::shared_ptr<RecordedAnswer> ask(const std::string& user, const std::string& target = kExec) const {
    return client.send({.target = target, .headers = upgrade(), .user = user});
  }
  int status(const std::string& user, const std::string& target = kExec) const {
    const auto answer = ask(user, target);
    return answer->relay ? 101 : answer->response.status;
  }
  template <class Noted>
  std::vector<Noted> noted() {
    std::vector<Noted> found;
    for (const EventRecord& record : service.log) {
      if (const auto* event = std::get_if<Noted>(&record.event)) found.push_back(*event);
    }
    return found;
  }

  FakeService service;
  Client client;
};

}  // namespace

TEST_CASE("a shell is the owner's and an admin's; neither a lead's, nor an operator's, nor the job's own") {
  ShellWorld world;
  CHECK_EQ(world.status("ann"), 101);
  CHECK_EQ(world.status("admin"), 101);
  CHECK_EQ(world.status("ops"), 403);
  CHECK_EQ(world.status("aud"), 403);
  CHECK_EQ(world.status("bob"), 404);
  CHECK_EQ(world.status("eve"), 404);
  CHECK_EQ(world.status("job1"), 403);
  const std::string of_bob = "/v1/jobs/2/exec?command=%5B%22sh%22%5D";
  CHECK_EQ(world.status("bob", of_bob), 101);
  CHECK_EQ(world.status("lea", of_bob), 403);
  CHECK_EQ(world.service.shells.size(), 3);
  CHECK_EQ(world.service.shells[0].begin.command, std::vector<std::string>{"sh", "-l"});
}

TEST_CASE("a shell is written down before it is opened, with its program alone, and at its end") {
  ShellWorld world;
  const auto answer = world.ask("admin");
  REQUIRE(answer->relay);
  CHECK_EQ(answer->relay->protocol, "v1.shell.berth");
  const auto opened = world.noted<ShellOpened>();
  REQUIRE_EQ(opened.size(), 1);
  CHECK_EQ(opened[0].program, "sh");
  CHECK_EQ(opened[0].owner, "ann");
  CHECK_EQ(opened[0].subject, "admin");
  CHECK(world.noted<ShellEnded>().empty());
  answer->relay->ended(shell_message(ShellEnd{3, {}}));
  REQUIRE_EQ(world.noted<ShellEnded>().size(), 1);
  CHECK_EQ(world.noted<ShellEnded>()[0].code, 3);
  const auto left = world.ask("ann");
  left->relay->ended(shell_message(ShellChannel::kOutput, "half a li"));
  CHECK_EQ(world.noted<ShellEnded>()[1].code, std::nullopt);
  CHECK_NE(world.noted<ShellEnded>()[1].message.find("went away"), std::string::npos);
  world.service.full = true;
  CHECK_EQ(world.status("ann"), 503);
  CHECK_EQ(world.service.shells.size(), 2);
}

TEST_CASE("a shell that the backend refuses is told with its reason, and has ended in the log") {
  ShellWorld world;
  world.service.shell_refusal = Error{ErrorCode::kUnsupported, "no shells in pods"};
  const auto answer = world.ask("ann");
  CHECK_EQ(answer->response.status, 422);
  CHECK_NE(answer->response.body.find("no shells in pods"), std::string::npos);
  REQUIRE_EQ(world.noted<ShellEnded>().size(), 1);
  CHECK_EQ(world.noted<ShellEnded>()[0].message, "no shells in pods");
}

TEST_CASE("a queue that opens no shells opens none for an admin, nor in the queues below it") {
  ShellWorld world;
  ClusterConfig config = world.service.state.config();
  config.queues[1].no_shell = true;  // b
  REQUIRE(world.service.run(ApplyConfig{config, "op"}));
  const std::string of_bob = "/v1/jobs/2/exec?command=%5B%22sh%22%5D";
  for (const char* user : {"bob", "admin"}) {
    const auto answer = world.ask(user, of_bob);
    CHECK_EQ(answer->response.status, 403);
    CHECK_NE(answer->response.body.find("queue 'b' opens no shells"), std::string::npos);
  }
  CHECK_EQ(world.service.denials.size(), 2);
  CHECK_EQ(world.status("ann"), 101);
}

TEST_CASE("what is no WebSocket of berth, and what comes from a page, is refused before anything is written down") {
  ShellWorld world;
  const auto without = [&](const std::string& name, const std::string& value) {
    std::vector<http::Header> headers = upgrade();
    for (http::Header& one : headers) {
      if (one.name == name) one.value = value;
    }
    return world.client.call({.target = kExec, .headers = headers, .user = "ann"}).status;
  };
  CHECK_EQ(without("connection", "close"), 426);
  CHECK_EQ(without("upgrade", "h2c"), 426);
  CHECK_EQ(without("sec-websocket-version", "8"), 426);
  CHECK_EQ(without("sec-websocket-key", "short"), 426);
  CHECK_EQ(without("sec-websocket-protocol", "v5.channel.k8s.io"), 426);
  CHECK_EQ(world.client.call({.target = kExec, .user = "ann"}).status, 426);
  std::vector<http::Header> of_page = upgrade();
  of_page.push_back({"origin", "https://berth.example"});
  CHECK_EQ(world.client.call({.target = kExec, .headers = of_page, .user = "ann"}).status, 403);
  for (const char* command : {"", "sh", "%5B%5D", "%5B1%5D", "%5B%22%22%5D", "%5B%22a%5Cu0000b%22%5D"})
    CHECK_EQ(world.status("ann", std::string("/v1/jobs/1/exec?command=") + command), 400);
  CHECK_EQ(world.status("ann", "/v1/jobs/1/exec"), 400);
  CHECK_EQ(world.status("ann", std::string(kExec) + "&task=1"), 404);
  CHECK_EQ(world.status("ann", "/v1/jobs/1/attach"), 409);
  CHECK_EQ(world.status("admin", "/v1/jobs/77/attach"), 404);
  CHECK(world.noted<ShellOpened>().empty());
}

TEST_CASE("the terminal of an interactive job is attached, and no shell is opened where nothing runs") {
  ShellWorld world;
  const auto answer = world.client.call({.method = "POST",
                                         .target = "/v1/jobs",
                                         .body = R"({"queue":"a","kind":"interactive","gpus":1,"command":["bash"]})",
                                         .user = "ann"});
  REQUIRE_EQ(answer.status, 201);
  CHECK_EQ(world.status("ann", "/v1/jobs/3/attach"), 409);  // it is bound, and has not started
  REQUIRE(world.service.run(ReportTaskStarted{JobId(3), 1, 0, 1}));
  CHECK_EQ(world.status("ann", "/v1/jobs/3/attach?columns=132&rows=43"), 101);
  CHECK(world.service.shells.back().begin.attach);
  CHECK_EQ(world.service.shells.back().begin.size, WindowSize{132, 43});
  world.service.finish(JobId(3), 0);
  CHECK_EQ(world.status("ann", "/v1/jobs/3/attach"), 409);
}

}  // namespace berth::api
