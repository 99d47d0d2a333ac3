#include "backend/local/master_port.h"

#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "executor/descriptor.h"

namespace berth::backend {
namespace {

// A listening socket on loopback, as a job has.
struct Squatter {
  executor::Descriptor socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  int port = 0;

  Squatter() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    REQUIRE(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), length) == 0);
    REQUIRE(::listen(socket.get(), 1) == 0);
    REQUIRE(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &length) == 0);
    port = ntohs(address.sin_port);
  }
};

struct PortDirectory {
  std::string path = "/tmp/berth-master-port-XXXXXX";
  PortDirectory() { REQUIRE(::mkdtemp(path.data()) != nullptr); }
  ~PortDirectory() { std::filesystem::remove_all(path); }
  PortDirectory(const PortDirectory&) = delete;
  PortDirectory& operator=(const PortDirectory&) = delete;
};

StartTask task_of_gang(int port) {
  StartTask start;
  start.env = {{"BERTH_TASK", "0"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", std::to_string(port)}};
  start.command = {"torchrun", "--master_port", std::to_string(port), "train.py", "--rdzv_endpoint", "x"};
  return start;
}

}  // namespace

TEST_CASE("a MASTER_PORT in use is replaced by a free one, the same for each task of the attempt") {
  const PortDirectory directory;
  const Squatter squatter;
  CHECK_FALSE(is_free_port(squatter.port));
  const std::string file = directory.path + "/attempt-1/master-port";
  StartTask first = task_of_gang(squatter.port);
  REQUIRE(take_master_port(first, file));
  const std::string port = first.env.back().second;
  CHECK(port != std::to_string(squatter.port));
  CHECK(first.command[2] == port);
  StartTask second = task_of_gang(squatter.port);
  second.command = {"torchrun", "--rdzv_endpoint", "127.0.0.1:" + std::to_string(squatter.port)};
  REQUIRE(take_master_port(second, file));
  CHECK(second.env.back().second == port);
  CHECK(second.command.back() == "127.0.0.1:" + port);
}

TEST_CASE("a MASTER_PORT that is free stays, also once task 0 listens on it; without a gang nothing is tried") {
  const PortDirectory directory;
  int free_port = 0;
  { free_port = Squatter().port; }
  StartTask first = task_of_gang(free_port);
  const auto command = first.command;
  REQUIRE(take_master_port(first, directory.path + "/master-port"));
  CHECK(first.env.back().second == std::to_string(free_port));
  CHECK(first.command == command);
  const Squatter in_use;
  StartTask alone;
  alone.env = {{"MASTER_PORT", std::to_string(in_use.port)}, {"BERTH_TASK", "0"}};  // the job's own variable
  REQUIRE(take_master_port(alone, directory.path + "/other"));
  CHECK(alone.env.front().second == std::to_string(in_use.port));
  CHECK_FALSE(std::filesystem::exists(directory.path + "/other"));
}

}  // namespace berth::backend
