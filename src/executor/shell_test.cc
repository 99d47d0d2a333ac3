// Shells in tasks, and the terminals of interactive tasks.

#include <sys/socket.h>
#include <sys/wait.h>

#include <csignal>

#include "executor/executor_fixture.h"
#include "executor/rank.h"
#include "model/exit_code.h"
#include "model/shell_message.h"

namespace berth::executor {
namespace {

// The other side of a shell, as a server has it.
class ShellClient {
 public:
  explicit ShellClient(Result<Descriptor> opened) {
    REQUIRE(opened.has_value());
    connection_ = std::move(*opened);
  }

  void send(ShellChannel channel, std::string_view bytes) { send(shell_message(channel, bytes)); }
  void send(const std::string& message) { send_bytes(framed(message)); }
  void send_bytes(const std::string& bytes) {
    std::string_view rest = bytes;
    while (!rest.empty()) {
      pollfd waited{connection_.get(), POLLIN | POLLOUT, 0};
      REQUIRE(::poll(&waited, 1, static_cast<int>(kPatienceMs)) > 0);
      if ((waited.revents & POLLIN) != 0) receive();
      const ssize_t count = ::send(connection_.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
      if (count > 0) rest.remove_prefix(static_cast<std::size_t>(count));
    }
  }
  // Waits until the shell has written the text.
  void await(std::string_view text) {
    while (output.find(text) == std::string::npos) REQUIRE(wait());
  }
  // Waits for the end.
  ShellEnd end() {
    while (!end_) REQUIRE(wait());
    return *end_;
  }
  // Returns false at the end of the stream.
  bool wait() {
    pollfd waited{connection_.get(), POLLIN, 0};
    REQUIRE_MESSAGE(::poll(&waited, 1, static_cast<int>(kPatienceMs)) > 0, "so far: " << output);
    return receive();
  }
  void leave() { connection_.reset(); }

  std::string output;
  std::string errors;

 private:
  bool receive() {
    char buffer[4096];
    const ssize_t count = ::recv(connection_.get(), buffer, sizeof buffer, 0);
    if (count == 0) return false;
    if (count > 0) reader_.feed({buffer, static_cast<std::size_t>(count)});
    for (auto message = reader_.next(); message && *message; message = reader_.next()) {
      const std::string_view bytes = std::string_view(**message).substr(1);
      if (channel_of(**message) == ShellChannel::kOutput) output += bytes;
      if (channel_of(**message) == ShellChannel::kErrors) errors += bytes;
      if (channel_of(**message) == ShellChannel::kEnd) end_ = shell_end_of(bytes);
    }
    return true;
  }

  Descriptor connection_;
  ShellMessageReader reader_;
  std::optional<ShellEnd> end_;
};

ShellBegin piped(const std::string& script, bool input = false) {
  return {false, false, input, {"sh", "-c", script}, {}, {}};
}
ShellBegin on_terminal(std::vector<std::string> command, WindowSize size = {}) {
  return {false, true, true, std::move(command), size, "dumb"};
}
const ShellBegin kAttach{true, false, false, {}, {100, 30}, {}};

class ShellFixture : public ExecutorFixture {
 public:
  // A task that runs until its file `end` is there.
  TaskLaunch running(std::uint64_t job = 1) {
    if (executor_ == nullptr) executor_ = &open();
    TaskLaunch task = shell(job, "until test -e end; do sleep 0.05; done");
    task.env.emplace_back("OF_THE_JOB", "yes");
    task.rank_env = {{{"RANK", "0"}}};
    REQUIRE(executor_->start(task).has_value());
    wait_for_start(task.key);
    return task;
  }
  TaskLaunch interactive(const std::string& script, std::int64_t detached_ms = 0) {
    executor_ = &open();
    TaskLaunch task = shell(1, script);
    task.terminal = true;
    task.detached_ms = detached_ms;
    task.stop_signal = SIGHUP;
    REQUIRE(executor_->start(task).has_value());
    wait_for_start(task.key);
    return task;
  }
  ShellClient open_shell(const TaskLaunch& task, const ShellBegin& begin) {
    return ShellClient(executor_->open_shell(task.key, begin));
  }
  void end(const TaskLaunch& task) { REQUIRE(executor_->kill(task.key, 0).has_value()); }

  Executor* executor_ = nullptr;
};

}  // namespace

TEST_CASE_FIXTURE(ShellFixture, "a shell has the environment and the directory of its task, and tells its exit code") {
  const auto task = running();
  auto client = open_shell(task, piped("pwd; echo $OF_THE_JOB $RANK; cat; echo err >&2; exit 3"));
  CHECK_EQ(client.end(), ShellEnd{3, {}});
  CHECK_EQ(client.output, path("").substr(0, path("").size() - 1) + "\nyes 0\n");
  CHECK_EQ(client.errors, "err\n");
  CHECK_FALSE(client.wait());
  auto killed = open_shell(task, piped("kill -9 $$"));
  CHECK_EQ(killed.end(), ShellEnd{137, {}});
}

TEST_CASE_FIXTURE(ShellFixture, "a shell is in the cgroup of its task") {
  const auto task = running();
  auto client = open_shell(task, piped("cat /proc/self/cgroup"));
  client.end();
  std::ifstream file("/proc/" + std::to_string(started.at(task.key).pids.front()) + "/cgroup");
  CHECK_EQ(client.output, std::string(std::istreambuf_iterator<char>(file), {}));
}

TEST_CASE_FIXTURE(ShellFixture, "what is sent is its standard input, however much, and ends when it is said to") {
  const auto task = running();
  auto client = open_shell(task, piped("cat", true));
  const std::string part(10'000, 'x');
  for (int i = 0; i < 100; ++i) client.send(ShellChannel::kInput, part);
  client.send(ShellChannel::kNoInput, {});
  CHECK_EQ(client.end(), ShellEnd{0, {}});
  CHECK_EQ(client.output.size(), 1'000'000);
}

TEST_CASE_FIXTURE(ShellFixture, "all messages that come at once are obeyed") {
  const auto task = running();
  auto client = open_shell(task, piped("cat", true));
  std::string messages;
  for (int i = 0; i < 1'000; ++i) messages += framed(shell_message(ShellChannel::kInput, "x"));
  client.send_bytes(messages + framed(shell_message(ShellChannel::kNoInput, {})));
  CHECK_EQ(client.end(), ShellEnd{0, {}});
  CHECK_EQ(client.output, std::string(1'000, 'x'));
}

TEST_CASE_FIXTURE(ShellFixture, "the input of a command that has closed its errors ends as that of another") {
  const auto task = running();
  auto client = open_shell(task, piped("exec 2>&-; echo ready; cat; exit 3", true));
  client.await("ready");
  client.send(ShellChannel::kNoInput, {});
  CHECK_EQ(client.end(), ShellEnd{3, {}});
}

TEST_CASE_FIXTURE(ShellFixture, "a start that hangs before its program is given up, and killed without a wait") {
  // The child hangs where it joins its cgroup: nobody reads this pipe.
  REQUIRE_EQ(::mkfifo(path("cgroup.procs").c_str(), 0600), 0);
  const TaskLaunch task = shell(1, "true");
  const auto outcome = start_rank(task, 0, "token", TaskCgroups{{path("")}}, 0, -1, RankStreams{}, 100);
  const auto* failure = std::get_if<StartFailure>(&outcome);
  REQUIRE(failure != nullptr);
  CHECK_EQ(failure->code, kNodeShortCode);
  CHECK_NE(failure->message.find("did not start within 100 ms"), std::string::npos);
  int status = 0;
  while (::waitpid(-1, &status, 0) > 0 && !(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)) {
  }
  CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
}

TEST_CASE_FIXTURE(ShellFixture, "a shell whose client does not read waits, and its task goes on") {
  const auto task = running();
  auto client = open_shell(task, piped("echo begun > begun; head -c 5000000 /dev/zero; echo done > done"));
  wait_for_file("begun");
  auto other = open_shell(task, piped("echo alive"));
  CHECK_EQ(other.end(), ShellEnd{0, {}});
  CHECK(read_file("done").empty());
  CHECK_EQ(client.end(), ShellEnd{0, {}});
  CHECK_EQ(client.output.size(), 5'000'000);
}

TEST_CASE_FIXTURE(ShellFixture, "a program that is missing is told with the code of a shell") {
  const auto task = running();
  auto client = open_shell(task, on_terminal({"no-such-shell"}));
  const ShellEnd end = client.end();
  CHECK_EQ(end.code, 127);
  CHECK_NE(end.message.find("cannot execute no-such-shell"), std::string::npos);
}

TEST_CASE_FIXTURE(ShellFixture, "a terminal has a size, which changes, and Ctrl-C interrupts what it runs") {
  const auto task = running();
  auto client = open_shell(task, on_terminal({"sh"}, {132, 43}));
  client.send(ShellChannel::kInput, "tty -s && stty size; echo $TERM\n");
  client.await("43 132\r\ndumb\r\n");
  client.send(ShellChannel::kInput, "stat -Lc mode=%a /proc/self/fd/0\n");
  client.await("mode=600");
  client.send(shell_message(WindowSize{90, 20}));
  client.send(ShellChannel::kInput, "stty size\n");
  client.await("20 90\r\n");
  client.send(ShellChannel::kInput,
              "trap 'echo inter''rupted; exit 7' INT; echo rea''dy; while :; do sleep 0.05; done\n");
  client.await("ready");
  client.send(ShellChannel::kInput, "\x03");
  CHECK_EQ(client.end(), ShellEnd{7, {}});
  CHECK_NE(client.output.find("interrupted"), std::string::npos);
}

TEST_CASE_FIXTURE(ShellFixture, "without a terminal a signal is passed on to the command") {
  const auto task = running();
  auto client = open_shell(task, piped("trap 'echo caught; exit 5' INT; echo ready; while :; do sleep 0.05; done"));
  client.await("ready");
  client.send(ShellChannel::kSignal, std::to_string(SIGINT));
  CHECK_EQ(client.end(), ShellEnd{5, {}});
}

TEST_CASE_FIXTURE(ShellFixture,
                  "a shell whose client goes away gets SIGHUP, and what it writes meanwhile ends it not") {
  const auto task = running();
  for (const bool terminal : {true, false}) {
    ShellBegin begin = piped("trap 'echo cleaning up; echo of errors >&2; echo hung-up-" + std::to_string(terminal) +
                             " >> hung-up; exit' HUP; echo ready; while :; do sleep 0.05; done");
    begin.terminal = begin.input = terminal;
    auto client = open_shell(task, begin);
    client.await("ready");
    client.leave();
    const std::string word = "hung-up-" + std::to_string(terminal);
    REQUIRE(wait_until([&] { return read_file("hung-up").find(word) != std::string::npos; }));
  }
}

TEST_CASE_FIXTURE(ShellFixture, "a shell that does not heed SIGHUP is killed") {
  const auto task = running();
  auto client = open_shell(task, piped("trap '' HUP; echo $$ > pid; echo ready; while :; do sleep 0.05; done"));
  client.await("ready");
  client.leave();
  const pid_t pid = std::stoi(read_file("pid"));
  CHECK(wait_until([&] { return !see_process(pid); }));
}

TEST_CASE_FIXTURE(ShellFixture,
                  "what a shell has left that does not heed SIGHUP is killed, also once the shell has ended") {
  const auto task = running();
  auto client = open_shell(task, piped("sh -c 'trap \"\" HUP; echo $$ > left; exec sleep 1000' & "
                                       "until test -s left; do sleep 0.05; done; echo ready; wait"));
  client.await("ready");
  client.leave();
  const pid_t pid = std::stoi(read_file("left"));
  CHECK(wait_until([&] { return !see_process(pid); }));
}

TEST_CASE_FIXTURE(ShellFixture, "shells that begin at once are all started") {
  const auto task = running();
  std::vector<ShellClient> clients;
  for (int i = 0; i < 8; ++i) clients.push_back(open_shell(task, piped("exit 3")));
  for (ShellClient& client : clients) CHECK_EQ(client.end(), ShellEnd{3, {}});
}

TEST_CASE_FIXTURE(ShellFixture, "shells end with their task, and their clients are told") {
  const auto task = running();
  auto client = open_shell(task, piped("trap '' HUP TERM; echo ready; sleep 1000; sleep 1000"));
  client.await("ready");
  end(task);
  CHECK_EQ(client.end(), ShellEnd{137, "the task has ended, and its shells with it"});
  wait_for_exit(task.key);
  CHECK(nothing_is_left());
  CHECK_EQ(executor_->open_shell(task.key, piped("true")).error().code, ErrorCode::kNotFound);
}

TEST_CASE_FIXTURE(ShellFixture, "a shell outlives no server: its connection is gone, and the task goes on") {
  const auto task = running();
  {
    auto client =
        open_shell(task, piped("trap 'echo x > hung-up; exit' HUP; echo ready; while :; do sleep 0.05; done"));
    client.await("ready");
  }
  close();
  open();
  wait_for_file("hung-up");
  CHECK_FALSE(exits.contains(task.key));
}

TEST_CASE_FIXTURE(ShellFixture, "a task has so many shells at once and no more") {
  const auto task = running();
  std::vector<ShellClient> clients;
  for (std::size_t i = 0; i < std::size_t{16}; ++i) {
    clients.push_back(open_shell(task, piped("echo ready; read line", true)));
    clients.back().await("ready");
  }
  auto more = open_shell(task, piped("true"));
  CHECK_NE(more.end().message.find("16 shells already"), std::string::npos);
  for (ShellClient& client : clients) client.send(ShellChannel::kNoInput, {});
  for (ShellClient& client : clients) CHECK_EQ(client.end().code, 1);
  auto again = open_shell(task, piped("true"));
  CHECK_EQ(again.end(), ShellEnd{0, {}});
}

TEST_CASE_FIXTURE(ShellFixture, "what is no message of a shell ends it") {
  const auto task = running();
  ShellBegin none;
  none.attach = true;
  auto no_terminal = open_shell(task, none);
  CHECK_NE(no_terminal.end().message.find("has no terminal"), std::string::npos);
  auto client = open_shell(task, piped("echo ready; read line", true));
  client.await("ready");
  client.send(std::string(kMostShellBytes + 1, 'x'));
  CHECK_NE(client.end().message.find("over 65536 bytes"), std::string::npos);
}

TEST_CASE_FIXTURE(ShellFixture,
                  "an interactive task shows a terminal that attaches what it has written, and ends with its shell") {
  const auto task = interactive("echo before; read line; echo got $line; stty size; exit 4");
  wait_for_file("logs/1/stdout-00000000000000000000.log");
  auto client = open_shell(task, kAttach);
  client.await("before\r\n");
  client.send(ShellChannel::kInput, "words\n");
  CHECK_EQ(client.end(), ShellEnd{4, {}});
  CHECK_NE(client.output.find("got words\r\n30 100\r\n"), std::string::npos);
  CHECK_EQ(wait_for_exit(task.key).code, 4);
  CHECK_NE(read_log(1, LogStream::kStdout).find("got words"), std::string::npos);
}

TEST_CASE_FIXTURE(ShellFixture,
                  "an interactive task goes on while its terminal is away, and the latest terminal has it") {
  const auto task = interactive("echo one; read line; echo two $line; read line; exit 2");
  auto first = open_shell(task, kAttach);
  first.await("one");
  first.leave();
  auto second = open_shell(task, kAttach);
  second.send(ShellChannel::kInput, "x\n");
  second.await("two x");
  auto third = open_shell(task, kAttach);
  third.await("two x");
  CHECK_EQ(second.end(), ShellEnd{std::nullopt, "the terminal was attached elsewhere"});
  third.send(ShellChannel::kInput, "y\n");
  CHECK_EQ(third.end(), ShellEnd{2, {}});
}

TEST_CASE_FIXTURE(ShellFixture, "an interactive task that nobody attaches is ended, as over a time limit") {
  const auto task = interactive("sleep 1000", 300);
  const auto exited = wait_for_exit(task.key);
  CHECK(exited.reason == ExitReason::kTimeLimit);
  CHECK_EQ(exited.signal, SIGHUP);
  CHECK_NE(exited.message.find("no terminal was attached for 300 ms"), std::string::npos);
}

TEST_CASE_FIXTURE(ShellFixture, "an attached interactive task does not end for that") {
  const auto task = interactive("read line; exit 0", 300);
  auto client = open_shell(task, kAttach);
  const std::int64_t began = boot_clock_ms();
  REQUIRE(wait_until([&] { return boot_clock_ms() - began > 1'500; }));
  CHECK_FALSE(exits.contains(task.key));
  client.leave();
  CHECK(wait_for_exit(task.key).reason == ExitReason::kTimeLimit);
}

}  // namespace berth::executor
