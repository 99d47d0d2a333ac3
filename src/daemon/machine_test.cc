#include "daemon/machine.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

namespace berth::daemon {
namespace {

struct MachineFiles {
  std::string path;
  MachineFiles() {
    char pattern[] = "/tmp/berth-machine-XXXXXX";
    path = ::mkdtemp(pattern);
  }
  ~MachineFiles() { std::filesystem::remove_all(path); }
};

Machine identified(const std::string& data_dir, const std::string& name, const std::string& gpus) {
  auto machine = describe_machine(name, gpus);
  REQUIRE(machine);
  REQUIRE(identify(*machine, data_dir));
  return *machine;
}

TEST_CASE("a machine has one id in a data directory, whatever its name, and so have its simulated GPUs") {
  const MachineFiles one;
  const MachineFiles other;
  const Machine first = identified(one.path, "a", "2xH100-SXM5-80GB");
  const Machine renamed = identified(one.path, "b", "2xH100-SXM5-80GB");
  CHECK(first.node.machine.size() == 32);
  CHECK(renamed.node.machine == first.node.machine);
  CHECK(renamed.node.gpus == first.node.gpus);
  CHECK(first.node.gpus[0].uuid != first.node.gpus[1].uuid);
  const Machine elsewhere = identified(other.path, "a", "2xH100-SXM5-80GB");
  CHECK(elsewhere.node.machine != first.node.machine);
  CHECK(elsewhere.node.gpus[0].uuid != first.node.gpus[0].uuid);
}

TEST_CASE("simulated GPUs keep the UUIDs of an earlier release only if they are the same ones") {
  const MachineFiles directory;
  NodeSpec recorded = describe_machine("a", "2xH100-SXM5-80GB")->node;
  Machine same = identified(directory.path, "a", "2xH100-SXM5-80GB");
  keep_simulated_uuids(same, recorded);
  CHECK(same.node.gpus == recorded.gpus);
  Machine more = identified(directory.path, "a", "3xH100-SXM5-80GB");
  const auto before = more.node.gpus;
  keep_simulated_uuids(more, recorded);
  CHECK(more.node.gpus == before);
  recorded.machine = "another";
  Machine other = identified(directory.path, "a", "2xH100-SXM5-80GB");
  keep_simulated_uuids(other, recorded);
  CHECK(other.node.gpus[0].uuid == before[0].uuid);
  recorded.machine = same.node.machine;
  keep_simulated_uuids(other, recorded);  // a later start of the release that gave the machine an id
  CHECK(other.node.gpus[0].uuid == recorded.gpus[0].uuid);
  recorded.gpus[1].model = "A100";
  Machine others = identified(directory.path, "a", "2xH100-SXM5-80GB");
  keep_simulated_uuids(others, recorded);
  CHECK(others.node.gpus[0].uuid == before[0].uuid);
}

}  // namespace
}  // namespace berth::daemon
