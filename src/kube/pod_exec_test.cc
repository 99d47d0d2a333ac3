#include "kube/pod_exec.h"

#include <doctest/doctest.h>

#include <boost/json/parse.hpp>

#include "kube/default_container.h"

using namespace berth;
using namespace berth::kube;

namespace {

std::string default_container(const std::string& pod) {
  return default_container_of(boost::json::parse(pod).as_object());
}

}  // namespace

TEST_CASE("the query has each word of the command, and a terminal has one stream of output") {
  ShellBegin begin;
  begin.command = {"sh", "-c", "echo a&b=c; exit 3"};
  CHECK(exec_path("team", "p-0", "main", begin) ==
        "/api/v1/namespaces/team/pods/p-0/exec?container=main&command=sh&command=-c&command=echo%20a%26b%3Dc%3B%20exit"
        "%203&stdin=false&stdout=true&stderr=true&tty=false");
  begin.command = {"bash"};
  begin.terminal = begin.input = true;
  CHECK(
      exec_path("team", "p-0", "main", begin).ends_with("&command=bash&stdin=true&stdout=true&stderr=false&tty=true"));
}

TEST_CASE("input, its end and sizes become messages of the API server, and a signal has none") {
  CHECK(exec_message(shell_message(ShellChannel::kInput, "x")) == std::string("\0x", 2));
  CHECK(exec_message(shell_message(ShellChannel::kNoInput, {})) == std::string("\xff\0", 2));
  CHECK(exec_message(shell_message(WindowSize{132, 43})) == "\4{\"Width\":132,\"Height\":43}");
  CHECK(!exec_message(shell_message(ShellChannel::kResize, "wide")));
  CHECK(!exec_message(shell_message(ShellChannel::kSignal, "2")));
  CHECK(!exec_message({}));
}

TEST_CASE("the Status of a command is its exit code, or what its node says") {
  CHECK(end_of_exec(R"({"metadata":{},"status":"Success"})") == ShellEnd{0, ""});
  CHECK(end_of_exec(R"({"status":"Failure","message":"command terminated with non-zero exit code","reason":)"
                    R"("NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"3"}]}})") ==
        ShellEnd{3, ""});
  const ShellEnd none = end_of_exec(
      R"({"status":"Failure","message":"error executing command in container: OCI runtime exec failed: exec: )"
      R"(\"nosuch\": executable file not found in $PATH","code":500})");
  CHECK(none.code == 127);
  CHECK(none.message.find("nosuch") != std::string::npos);
  const ShellEnd last =
      end_of_exec(R"({"status":"Failure","message":")" + std::string(1000, 'x') + R"(: the reason"})");
  CHECK(last.message.ends_with(": the reason"));
  CHECK(last.message.size() < 400);
  CHECK(end_of_exec(R"({"status":"Failure","message":"exec /etc/passwd: permission denied"})").code == 126);
  CHECK(!end_of_exec(R"({"status":"Failure","message":"failed to exec in container: failed to create exec: mkdir )"
                     R"(/run/containerd/x: no such file or directory"})")
             .code);
  std::string many;
  for (int i = 0; i < 200; ++i) many += "é";
  CHECK(end_of_exec(R"({"status":"Failure","message":")" + many + R"(x"})").message.ends_with("éx"));
  const ShellEnd lost = end_of_exec(R"({"status":"Failure","message":"container \"main\" not found"})");
  CHECK(!lost.code);
  CHECK(lost.message == "its node says: container \"main\" not found");
}

TEST_CASE("a text that is no Status, or one of a wild code, gives no code") {
  CHECK(end_of_exec("tls:\x1b[2J bad").message.find('\x1b') == std::string::npos);
  CHECK(!end_of_exec("").code);
  CHECK(!end_of_exec("[]").code);
  for (const char* code : {"-1", "256", "x", ""}) {
    CHECK(!end_of_exec(R"({"status":"Failure","details":{"causes":[{"reason":"ExitCode","message":")" +
                       std::string(code) + R"("}]}})")
               .code);
  }
}

TEST_CASE("the container that is meant is the one that the pod names, else its first") {
  const std::string containers = R"("spec":{"containers":[{"name":"proxy"},{"name":"train"}]})";
  CHECK(default_container("{" + containers + "}") == "proxy");
  const auto named = [&](const std::string& name) {
    return default_container(R"({"metadata":{"annotations":{"kubectl.kubernetes.io/default-container":")" + name +
                             R"("}},)" + containers + "}");
  };
  CHECK(named("train") == "train");
  CHECK(named("gone") == "proxy");
  CHECK(default_container(R"({"spec":{"containers":[{"name":"a&b"}]}})").empty());
  CHECK(default_container("{}").empty());
}
