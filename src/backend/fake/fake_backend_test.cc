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
  node.gpus.resize(2);
  fleet.add_node(node, kBegin);
  return fleet;
}

// Returns the health of two GPUs after the reports: "+" healthy, "-" failed.
std::string health_told(const std::vector<Command>& reports) {
  std::string told;
  for (const Command& report : reports) {
    if (const auto* node = std::get_if<RegisterNode>(&report)) {
      told.clear();
      for (const Gpu& gpu : node->spec.gpus) told += gpu.healthy ? '+' : '-';
    } else if (const auto* gpu = std::get_if<ReportGpuHealth>(&report)) {
      if (told.empty()) told = "..";
      told[gpu->gpu] = gpu->healthy ? '+' : '-';
    }
  }
  return told;
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

TEST_CASE("a GPU that failed stays failed until it is said to be well, whoever was silent or restarted meanwhile") {
  FakeBackend fleet = fleet_of_one();
  fleet.advance(kBegin);
  fleet.take_reports();
  CHECK(fleet.set_gpu_health("n", 1, false, kBegin));
  CHECK_FALSE(fleet.set_gpu_health("n", 1, false, kBegin));
  CHECK_FALSE(fleet.set_gpu_health("n", 2, false, kBegin));
  fleet.advance(kBegin);
  CHECK_EQ(health_told(fleet.take_reports()), ".-");
  fleet.reconnect(kBegin + 1);
  CHECK_EQ(health_told(fleet.take_reports()), "+-");
  fleet.lose_contact("n", kBegin + 2);
  fleet.set_gpu_health("n", 0, false, kBegin + 3);
  fleet.set_gpu_health("n", 1, true, kBegin + 3);
  fleet.advance(kBegin + 4);
  CHECK_EQ(health_told(fleet.take_reports()), "");  // the node is silent
  fleet.regain_contact("n", kBegin + 5);
  CHECK_EQ(health_told(fleet.take_reports()), "-+");
  fleet.kill_node("n", kBegin + 6);
  fleet.boot_node("n", kBegin + 7);
  CHECK_EQ(health_told(fleet.take_reports()), "-+");
}

TEST_CASE("a task whose supervisor hangs ends by nothing but a kill") {
  FakeBackend fleet = fleet_of_one();
  StartTask start = start_on_n();
  start.time_limit_ms = 1000;
  fleet.perform(start, kBegin);
  fleet.advance(kBegin + 200);
  fleet.hang_supervisors(start.key.job);
  fleet.perform(SignalTask{start.key, "n", {}}, kBegin + 300);
  fleet.advance(kBegin + 3'600'000);
  CHECK(fleet.live_count() == 1);
  fleet.take_reports();
  fleet.perform(KillTask{start.key, "n", 0}, kBegin + 3'600'000);
  fleet.advance(kBegin + 3'700'000);
  CHECK(fleet.live_count() == 0);
  const auto reports = fleet.take_reports();
  REQUIRE(reports.size() == 1);
  CHECK(std::get<ReportTaskExited>(reports[0]).exit.reason == ExitReason::kSupervisorLost);
}

TEST_CASE("a node that is renamed registers again, and its tasks run on") {
  FakeBackend fleet = fleet_of_one();
  fleet.perform(start_on_n(), kBegin);
  fleet.advance(kBegin + 200);
  fleet.take_reports();
  fleet.rename_node("n", "m", kBegin + 300);
  fleet.advance(kBegin + 300);
  const auto reports = fleet.take_reports();
  REQUIRE(reports.size() == 1);
  CHECK(std::get<RegisterNode>(reports[0]).spec.name == "m");
  CHECK(fleet.live_count() == 1);
  CHECK(fleet.node_in_contact("n"));
}

}  // namespace berth::backend
