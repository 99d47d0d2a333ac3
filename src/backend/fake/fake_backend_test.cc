#include "backend/fake/fake_backend.h"

#include <doctest/doctest.h>

#include <string>

namespace berth::backend {
namespace {

constexpr Timestamp kBegin{1'000'000};

FakeBackend fleet_of_one() {
  FakeBackend fleet(1, [](const StartTask&) { return TaskScript{}; });
  NodeSpec node;
  node.name = "n";
  fleet.add_node(node, kBegin);
  return fleet;
}

StartTask start_on_n() {
  StartTask start;
  start.key = {JobId(1), 1, 0, 1};
  start.node = "n";
  return start;
}

}  // namespace

TEST_CASE("what a silent node was told reaches it when it speaks again") {
  FakeBackend fleet = fleet_of_one();
  fleet.lose_contact("n", kBegin);
  fleet.perform(start_on_n(), kBegin + 1);
  fleet.regain_contact("n", kBegin + 2);
  CHECK(fleet.executions().size() == 1);
}

TEST_CASE("tasks that were killed because the lease ran out are lost with their node") {
  FakeBackend fleet = fleet_of_one();
  fleet.perform(start_on_n(), kBegin);
  fleet.lose_contact("n", kBegin);
  fleet.advance(kBegin + 65'000);
  fleet.regain_contact("n", kBegin + 66'000);
  fleet.advance(kBegin + 67'000);
  int exits = 0;
  for (const Command& report : fleet.take_reports()) {
    const auto* exited = std::get_if<ReportTaskExited>(&report);
    if (exited == nullptr) continue;
    ++exits;
    CHECK(exited->exit.reason == ExitReason::kNodeLost);
    CHECK(exited->exit.code != 0);
  }
  CHECK(exits == 1);
}

TEST_CASE("what a silent node was told does not reach it once it was fenced") {
  FakeBackend fleet = fleet_of_one();
  fleet.lose_contact("n", kBegin);
  fleet.perform(start_on_n(), kBegin + 1);
  fleet.fence_node("n", kBegin + 2);
  fleet.boot_node("n", kBegin + 3);
  CHECK(fleet.executions().empty());
}

}  // namespace berth::backend
