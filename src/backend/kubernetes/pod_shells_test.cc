#include "backend/kubernetes/pod_shells.h"

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <boost/json/parse.hpp>
#include <cstdio>
#include <future>
#include <optional>
#include <thread>

#include "backend/kubernetes/fake_api_server.h"

namespace berth::backend {
namespace {

using namespace std::chrono_literals;

constexpr auto kShellPatience = 60s;  // far more than a loaded machine takes; no passing test waits for it
constexpr const char* kPodsOfAll = "/api/v1/pods";
constexpr const char* kExecOfPod = "GET /api/v1/namespaces/team/pods/p/exec";

const std::string kSucceeded = std::string("\3") + R"({"metadata":{},"status":"Success"})";
const std::string kEndedWith3 =
    std::string("\3") +
    R"({"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"3"}]}})";

// The user's end of a shell.
class User {
 public:
  explicit User(ShellStream stream) : stream_(std::move(stream)) {}

  void send(const std::string& message) const {
    std::string bytes = framed(message);
    while (!bytes.empty()) {
      const ssize_t count = ::send(*stream_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count > 0) bytes.erase(0, static_cast<std::size_t>(count));
      if (count <= 0) wait(POLLOUT);
    }
  }
  // Returns the next message; nothing: the stream has ended.
  std::optional<std::string> next() {
    std::array<char, 4096> buffer;
    while (true) {
      auto message = reader_.next();
      REQUIRE(message);
      if (*message) return *message;
      wait(POLLIN);
      const ssize_t count = ::recv(*stream_, buffer.data(), buffer.size(), 0);
      if (count == 0) return std::nullopt;
      if (count > 0) reader_.feed({buffer.data(), static_cast<std::size_t>(count)});
    }
  }
  // Returns what came of a channel until the end; `end` is set.
  std::string read_all(ShellChannel wanted) {
    std::string all;
    while (const auto message = next()) {
      if (channel_of(*message) == wanted) all += message->substr(1);
      if (channel_of(*message) == ShellChannel::kErrors) errors += message->substr(1);
      if (channel_of(*message) == ShellChannel::kEnd) end = shell_end_of(message->substr(1));
    }
    return all;
  }
  bool has_message() const {
    pollfd asked{*stream_, POLLIN, 0};
    return ::poll(&asked, 1, 0) > 0;
  }
  void leave() { stream_.reset(); }
  void wait(short events) const {
    pollfd asked{*stream_, events, 0};
    REQUIRE(::poll(&asked, 1, std::chrono::milliseconds(kShellPatience).count()) > 0);
  }

  std::optional<ShellEnd> end;
  std::string errors;

 private:
  ShellStream stream_;
  ShellMessageReader reader_;
};

// Shells in one pod, `team/p`, with a thread for their HTTP.
struct Shells {
  Shells() : http(Credentials{server.url(), {}, {}, {}, "secret", {}, {}}), shells(http) {
    put("u1");
    thread = std::thread([this] {
      while (!stopping) {
        std::vector<std::function<void()>> taken;
        {
          const std::lock_guard lock(mutex);
          taken.swap(asked);
        }
        for (const auto& one : taken) one();
        http.run(Clock::now() + 1s);
      }
    });
  }
  ~Shells() { stop(); }
  Shells(const Shells&) = delete;
  Shells& operator=(const Shells&) = delete;

  void stop() {
    if (!thread.joinable()) return;
    stopping = true;
    http.wake();
    thread.join();
    shells.stop();
  }
  void put(const std::string& uid) {
    server.put(kPodsOfAll, boost::json::parse(R"({"metadata":{"name":"p","namespace":"team","uid":")" + uid +
                                              R"(","annotations":{"kubectl.kubernetes.io/default-container":"train"}},)"
                                              R"("spec":{"containers":[{"name":"proxy"},{"name":"train"}]}})")
                               .as_object());
  }
  Result<ShellStream> open(ShellBegin begin = {}) {
    begin.command = {"sh", "-c", "x"};
    const auto answered = std::make_shared<std::promise<Result<ShellStream>>>();
    auto answer = answered->get_future();
    {
      const std::lock_guard lock(mutex);
      asked.emplace_back([this, begin, answered] {
        shells.open({"team", "p", "u1", false}, begin,
                    [answered](Result<ShellStream> stream) { answered->set_value(std::move(stream)); });
      });
    }
    http.wake();
    REQUIRE(answer.wait_for(kShellPatience) == std::future_status::ready);
    return answer.get();
  }
  User opened(const ShellBegin& begin = {}) {
    auto stream = open(begin);
    REQUIRE(stream);
    return User(*stream);
  }

  FakeApiServer server;
  Http http;
  PodShells shells;
  std::mutex mutex;
  std::vector<std::function<void()>> asked;
  std::atomic<bool> stopping{false};
  std::thread thread;
};

ShellBegin with_input() {
  ShellBegin begin;
  begin.input = true;
  return begin;
}

ShellBegin with_terminal() {
  ShellBegin begin;
  begin.terminal = true;
  begin.size = {132, 43};
  return begin;
}

}  // namespace

TEST_CASE("a command's output and errors come apart, then its exit code, and the stream ends") {
  Shells all;
  std::string path;
  all.server.on_exec([&](FakeExec& shell) {
    path = shell.path();
    shell.send("\1out");
    shell.send("\2wrong");
    shell.send(kEndedWith3);
    shell.send("\1 late");
  });
  User user = all.opened();
  CHECK(user.read_all(ShellChannel::kOutput) == "out late");
  CHECK(user.errors == "wrong");
  CHECK(user.end == ShellEnd{3, ""});
  CHECK(path.find("container=train&command=sh&command=-c&command=x&stdin=false&stdout=true&stderr=true&tty=false") !=
        std::string::npos);
}

TEST_CASE("a command that succeeds ends with 0, also if the connection stays open behind it") {
  Shells all;
  all.server.on_exec([](FakeExec& shell) {
    shell.send(kSucceeded);
    while (shell.next()) continue;
  });
  User user = all.opened();
  CHECK(user.read_all(ShellChannel::kOutput).empty());
  CHECK(user.end == ShellEnd{0, ""});
}

TEST_CASE("what is piped in arrives whole, and its end with it") {
  Shells all;
  all.server.on_exec([](FakeExec& shell) {
    std::size_t bytes = 0;
    while (const auto message = shell.next()) {
      if (*message == std::string("\xff\0", 2)) break;
      bytes += message->size() - 1;
    }
    shell.send("\1" + std::to_string(bytes));
    shell.send(kSucceeded);
  });
  User user = all.opened(with_input());
  const std::string part(kShellChunkBytes, 'x');
  for (int i = 0; i < 64; ++i) user.send(shell_message(ShellChannel::kInput, part));
  user.send(shell_message(ShellChannel::kNoInput, {}));
  CHECK(user.read_all(ShellChannel::kOutput) == "1048576");
  CHECK(user.end == ShellEnd{0, ""});
}

TEST_CASE("an API server that cannot tell the end of the input takes none that is piped, and all else") {
  Shells all;
  all.server.on_exec([](FakeExec& shell) { shell.send(kSucceeded); }, "v4.channel.k8s.io");
  const auto piped = all.open(with_input());
  REQUIRE(!piped);
  CHECK(piped.error().code == ErrorCode::kUnsupported);
  User user = all.opened();
  user.read_all(ShellChannel::kOutput);
  CHECK(user.end == ShellEnd{0, ""});
}

TEST_CASE("a terminal has its size from the beginning, then each new one, and Ctrl-C is typed") {
  Shells all;
  all.server.on_exec([](FakeExec& shell) {
    for (int i = 0; i < 3; ++i) shell.send("\1" + shell.next().value_or("") + "\n");
    shell.send(kSucceeded);
  });
  User user = all.opened(with_terminal());
  user.send(shell_message(WindowSize{80, 24}));
  user.send(shell_message(ShellChannel::kSignal, "2"));
  CHECK(user.read_all(ShellChannel::kOutput) == std::string("\4{\"Width\":132,\"Height\":43}\n"
                                                            "\4{\"Width\":80,\"Height\":24}\n") +
                                                    std::string("\0\x03\n", 3));
}

TEST_CASE("without a terminal a signal goes nowhere, which is said once") {
  Shells all;
  all.server.on_exec([](FakeExec& shell) {
    shell.send("\1" + shell.next().value_or(""));
    shell.send(kSucceeded);
  });
  User user = all.opened(with_input());
  user.send(shell_message(ShellChannel::kSignal, "2"));
  user.send(shell_message(ShellChannel::kSignal, "2"));
  user.send(shell_message(ShellChannel::kInput, "x"));
  CHECK(user.read_all(ShellChannel::kOutput) == std::string("\0x", 2));
  CHECK(user.errors.starts_with("berth: no signal reaches a command in a pod."));
  CHECK(user.errors.find("berth:", 1) == std::string::npos);
}

TEST_CASE("a right that the chart has not given is told with the value that gives it") {
  Shells all;
  all.server.fail(kExecOfPod, 403, 1, "",
                  R"({"message":"pods \"p\" is forbidden: User \"system:serviceaccount:berth:berth\" cannot get )"
                  R"(resource \"pods/exec\" in API group \"\" in the namespace \"team\""})");
  const auto refused = all.open();
  REQUIRE(!refused);
  CHECK(refused.error().code == ErrorCode::kUnsupported);
  CHECK(refused.error().message.find("set shells.enabled in the chart") != std::string::npos);
}

TEST_CASE("what else is refused is told in the API server's words") {
  Shells all;
  const auto refusal = [&](int status, const std::string& body) {
    all.server.fail(kExecOfPod, status, 1, "", body);
    auto refused = all.open();
    REQUIRE(!refused);
    return refused.error();
  };
  const Error denied = refusal(403, R"({"message":"admission webhook \"w\" denied the request: no shells"})");
  CHECK(denied.code == ErrorCode::kDenied);
  CHECK(denied.message.find("no shells") != std::string::npos);
  CHECK(refusal(404, R"({"message":"pods \"p\" not found"})").code == ErrorCode::kConflict);
  CHECK(refusal(400, R"({"message":"pod p does not have a host assigned"})").message.find("host assigned") !=
        std::string::npos);
  CHECK(refusal(500, R"({"message":"etcd is away"})").code == ErrorCode::kUnavailable);
}

TEST_CASE("a pod that is gone, or whose name another one has, gets no shell") {
  Shells all;
  all.put("u2");
  CHECK(all.open().error().message == "pod team/p is gone: another one has its name now");
  all.server.remove(kPodsOfAll, "team", "p");
  const auto gone = all.open();
  REQUIRE(!gone);
  CHECK(gone.error().code == ErrorCode::kConflict);
  CHECK(gone.error().message == "pod team/p is gone");
  CHECK(all.server.requests(kExecOfPod).empty());
}

TEST_CASE("an API server that closes at once ends the shell, whose code is not known") {
  Shells all;
  all.server.on_exec([](FakeExec&) {});
  User user = all.opened();
  user.read_all(ShellChannel::kOutput);
  REQUIRE(user.end);
  CHECK(!user.end->code);
  CHECK(user.end->message.ends_with("how the command ends is not known"));
}

TEST_CASE("an end that is no Status is told in its own words") {
  Shells all;
  all.server.on_exec([](FakeExec& shell) { shell.send("\3unable to upgrade connection"); });
  User user = all.opened();
  user.read_all(ShellChannel::kOutput);
  REQUIRE(user.end);
  CHECK(user.end->message.find("unable to upgrade connection") != std::string::npos);
}

TEST_CASE("a stream that breaks the protocol ends the shell") {
  Shells all;
  all.server.on_exec([](FakeExec& shell) {
    shell.send_raw(std::string("\x82\x7f\0\0\0\x7f\0\0\0\0", 10));  // a message of half a terabyte
    while (shell.next()) continue;
  });
  User user = all.opened();
  user.read_all(ShellChannel::kOutput);
  REQUIRE(user.end);
  CHECK(!user.end->code);
}

TEST_CASE("a user who goes away closes the connection to the API server") {
  Shells all;
  std::promise<void> closed;
  all.server.on_exec([&](FakeExec& shell) {
    shell.send("\1here");
    while (shell.next()) continue;
    closed.set_value();
  });
  User user = all.opened(with_terminal());
  CHECK(user.next() == "\1here");
  user.leave();
  CHECK(closed.get_future().wait_for(kShellPatience) == std::future_status::ready);
}

TEST_CASE("a command whose output is not read waits, others go on, and nothing of it is lost") {
  constexpr int kMessages = 2048;
  Shells all;
  std::atomic<int> sent{0};
  const std::string part = "\1" + std::string(32 * 1024, 'y');
  all.server.on_exec([&](FakeExec& shell) {
    if (shell.path().find("stdin=true") != std::string::npos) {
      shell.send(kEndedWith3);
      return;
    }
    for (int i = 0; i < kMessages && shell.send(part); ++i) ++sent;
    shell.send(kSucceeded);
  });
  User slow = all.opened();
  slow.wait(POLLIN);
  User other = all.opened(with_input());
  other.read_all(ShellChannel::kOutput);
  CHECK(other.end == ShellEnd{3, ""});
  CHECK(sent < kMessages);  // 64 MiB are in no buffer
  CHECK(slow.read_all(ShellChannel::kOutput).size() == std::size_t{kMessages} * 32 * 1024);
  CHECK(slow.end == ShellEnd{0, ""});
}

TEST_CASE("what has come and had to wait for the user goes on without another word of the API server") {
  // Of some of these lengths the last part has been read, and waits for room, when nothing more is to come.
  for (int frames = 2600; frames < 6200; frames += 90) {
    Shells all;
    all.server.on_exec([frames](FakeExec& shell) {
      std::string bytes;
      for (int i = 0; i < frames; ++i) bytes += web_socket_frame(WebSocketKind::kBinary, "\1" + std::string(20, 'y'));
      shell.send_raw(bytes);
      while (shell.next()) {  // until the user is gone
      }
    });
    User user = all.opened();
    const auto begun = Clock::now();
    for (int count = 0; count < frames * 20;) {
      const auto message = user.next();
      REQUIRE(message);
      count += static_cast<int>(message->size()) - 1;
    }
    REQUIRE(Clock::now() - begun < 14s);  // and not with the next ping
  }
}

TEST_CASE("a refusal that comes in chunks is told in its words, and at once") {
  Shells all;
  const std::string denial = R"({"message":"admission webhook \"w\" denied the request: no shells"})";
  const auto chunk = [](const std::string& bytes) {
    char size[16];
    std::snprintf(size, sizeof size, "%zx", bytes.size());
    return size + ("\r\n" + bytes + "\r\n");
  };
  all.server.answer_exec_with("HTTP/1.1 403 Forbidden\r\nTransfer-Encoding: chunked\r\n\r\n" +
                              chunk(denial.substr(0, 10)) + chunk(denial.substr(10)) + chunk(""));
  const auto refused = all.open();
  REQUIRE(!refused);
  CHECK(refused.error().code == ErrorCode::kDenied);
  CHECK(refused.error().message.find("no shells") != std::string::npos);
}

// Its time is the test's.
TEST_CASE("an API server is pinged when it has been silent for a while, and not while output comes") {
  FakeApiServer server;
  server.on_exec([](FakeExec& shell) {
    while (shell.next()) shell.send("\1" + std::to_string(shell.pings()));
  });
  Clock::time_point now = Clock::now();
  std::optional<User> user;
  PodShell shell({server.url(), {}, {}, {}, {}, {}, {}}, "team/p", "/api/v1/namespaces/team/pods/p/exec?", with_input(),
                 now, [&](Result<ShellStream> stream) { user.emplace(*stream); });
  const auto ask = [&] {
    std::vector<pollfd> waited;
    user->send(shell_message(ShellChannel::kInput, "x"));
    while (true) {
      shell.attend(now);
      if (user->has_message()) return *user->next();
      waited.clear();
      shell.add_waited(waited);
      REQUIRE(::poll(waited.data(), waited.size(), 60'000) >= 0);
    }
  };
  while (!user) {
    shell.attend(now);
    std::this_thread::yield();
  }
  CHECK(ask() ==
        "\1"
        "0");
  now += 10s;
  CHECK(ask() ==
        "\1"
        "0");
  now += 10s;  // 20 s from the beginning, 10 s from what came last
  CHECK(ask() ==
        "\1"
        "0");
  now += 20s;
  shell.attend(now);
  CHECK(ask() ==
        "\1"
        "1");
}

TEST_CASE("a pod has sixteen shells at once") {
  Shells all;
  all.server.on_exec([](FakeExec& shell) {
    while (shell.next()) continue;
  });
  std::vector<User> users;
  for (std::size_t i = 0; i < PodShells::kMostOfOnePod; ++i) users.push_back(all.opened());
  const auto refused = all.open();
  REQUIRE(!refused);
  CHECK(refused.error().message == "this task has 16 shells already; close one");
}

TEST_CASE("a server that stops ends its shells, and says so to them") {
  Shells all;
  all.server.on_exec([](FakeExec& shell) {
    while (shell.next()) continue;
  });
  User user = all.opened();
  all.stop();
  user.read_all(ShellChannel::kOutput);
  REQUIRE(user.end);
  CHECK(user.end->message == "the server is stopping");
}

}  // namespace berth::backend
