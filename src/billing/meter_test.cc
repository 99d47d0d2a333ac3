#include "billing/meter.h"

#include <doctest/doctest.h>

#include "base/random.h"

namespace berth::billing {
namespace {

struct Story {
  Meter meter;
  Seq seq = 0;
  void at(std::int64_t ms, Event event) {
    meter.apply({++seq, Timestamp{ms}, std::move(event)});
    CHECK_EQ(meter.check().value_or(""), "");
  }
};

NodeRegistered node(std::uint32_t id, int gpus) {
  NodeRegistered event;
  event.node = NodeId(id);
  event.spec.name = "n" + std::to_string(id);
  for (int i = 0; i < gpus; ++i) {
    Gpu gpu;
    gpu.model = "H100";
    event.spec.gpus.push_back(gpu);
  }
  return event;
}

JobSubmitted submitted(std::uint64_t id, const std::string& queue) {
  JobSubmitted event;
  event.job = JobId(id);
  event.spec.queue = queue;
  event.spec.user = "ann";
  return event;
}

TaskPlacement on(std::uint32_t node, std::vector<std::uint8_t> gpus, std::int32_t milli = 1000) {
  TaskPlacement placement;
  placement.node = NodeId(node);
  placement.gpus = std::move(gpus);
  placement.gpu_milli = milli;
  return placement;
}

AttemptStarted started(std::uint64_t id, std::vector<TaskPlacement> placements, bool guaranteed) {
  AttemptStarted event;
  event.job = JobId(id);
  event.attempt = 1;
  event.placements = std::move(placements);
  event.guaranteed = guaranteed;
  return event;
}

AttemptEnded ended(std::uint64_t id) {
  AttemptEnded event;
  event.job = JobId(id);
  event.attempt = 1;
  return event;
}

}  // namespace

TEST_CASE("usage is split within and borrowed, and idle time is the rest") {
  Story story;
  story.at(0, node(0, 4));
  story.at(1000, submitted(1, "a"));
  story.at(1000, started(1, {on(0, {0, 1})}, false));
  story.at(3000, ChargePromoted{JobId(1), 1, 0, 1, true});
  story.at(6000, ended(1));
  const Usage usage = story.meter.usage({0}, {10'000});
  REQUIRE_EQ(usage.rows.size(), 2);
  CHECK_EQ(usage.rows[0].account.borrowed, false);
  CHECK_EQ(usage.rows[0].gpu_milli_ms, 2 * 1000 * 3000);
  CHECK_EQ(usage.rows[1].account.borrowed, true);
  CHECK_EQ(usage.rows[1].gpu_milli_ms, 2 * 1000 * 2000);
  CHECK_EQ(usage.capacity, 4 * 1000 * 10'000);
  CHECK_EQ(usage.idle, usage.capacity - 2 * 1000 * 5000);
  CHECK_EQ(story.meter.usage({2000}, {4000}).rows[0].gpu_milli_ms, 2 * 1000 * 1000);
}

TEST_CASE("a GPU that is unhealthy while bound stays used; unbound it is down") {
  Story story;
  story.at(0, node(0, 1));
  story.at(0, submitted(1, "a"));
  story.at(0, started(1, {on(0, {0}, 250)}, true));
  story.at(1000, GpuHealthChanged{NodeId(0), 0, false, "xid 79"});
  story.at(2000, ended(1));
  story.at(3000, NodeStatusChanged{NodeId(0), NodeStatus::kLost, ""});
  const Usage usage = story.meter.usage({0}, {4000});
  CHECK_EQ(usage.rows.at(0).gpu_milli_ms, 250 * 2000);
  CHECK_EQ(usage.idle, 750 * 1000);
  CHECK_EQ(usage.down, 750 * 1000 + 1000 * 2000);
}

TEST_CASE("a GPU that others use is foreign while no job holds it") {
  Story story;
  story.at(0, node(0, 2));
  story.at(0, submitted(1, "a"));
  story.at(0, started(1, {on(0, {0})}, true));
  story.at(1000, ForeignUseChanged{NodeId(0), {0, 0, {0, 1}, {}}});
  story.at(2000, ended(1));
  story.at(3000, ForeignUseChanged{NodeId(0), {}});
  const Usage usage = story.meter.usage({0}, {4000});
  CHECK_EQ(usage.foreign, 3 * 1000 * 1000);
  CHECK_EQ(usage.idle, 3 * 1000 * 1000);
  CHECK_EQ(usage.down, 0);
}

TEST_CASE("a saved and loaded meter goes on the same") {
  Story story;
  story.at(0, node(0, 4));
  story.at(1, ForeignUseChanged{NodeId(0), {0, 0, {2}, {}}});
  story.at(5, submitted(1, "a"));
  story.at(7, started(1, {on(0, {0, 3})}, false));
  auto loaded = Meter::load(story.meter.save());
  REQUIRE(loaded.has_value());
  CHECK_EQ(loaded->save(), story.meter.save());
  CHECK_EQ(loaded->usage({0}, {100}).rows.at(0).gpu_milli_ms, 2 * 1000 * 93);
  CHECK_FALSE(Meter::load("nonsense").has_value());
}

TEST_CASE("each step of growth is billed as it is charged, and promoted on its own") {
  Story story;
  story.at(0, node(0, 4));
  story.at(0, submitted(1, "a"));
  story.at(0, started(1, {on(0, {0})}, true));
  AttemptGrown grown;
  grown.job = JobId(1);
  grown.attempt = 1;
  grown.placements = {on(0, {1, 2})};
  story.at(1000, grown);
  story.at(3000, ChargePromoted{JobId(1), 1, 1, 1, true});
  story.at(4000, ended(1));
  const Usage usage = story.meter.usage({0}, {4000});
  REQUIRE_EQ(usage.rows.size(), 2);
  CHECK_EQ(usage.rows[0].gpu_milli_ms, 1000 * 4000 + 2 * 1000 * 1000);
  CHECK_EQ(usage.rows[1].gpu_milli_ms, 2 * 1000 * 2000);
}

TEST_CASE("a task on a node that lost contact stays used, and what nobody holds there is down") {
  Story story;
  story.at(0, node(0, 2));
  story.at(0, submitted(1, "a"));
  story.at(0, started(1, {on(0, {0})}, true));
  story.at(1000, NodeStatusChanged{NodeId(0), NodeStatus::kUnknown, "no contact"});
  story.at(3000, NodeStatusChanged{NodeId(0), NodeStatus::kReady, ""});
  const Usage usage = story.meter.usage({0}, {4000});
  CHECK_EQ(usage.rows.at(0).gpu_milli_ms, 1000 * 4000);
  CHECK_EQ(usage.down, 1000 * 2000);
  CHECK_EQ(usage.idle, 1000 * 2000);
}

TEST_CASE("a node that comes back with another model takes its tasks' usage along") {
  Story story;
  story.at(0, node(0, 2));
  story.at(0, submitted(1, "a"));
  story.at(0, started(1, {on(0, {0})}, true));
  NodeRegistered changed = node(0, 2);
  for (Gpu& gpu : changed.spec.gpus) gpu.model = "A100";
  story.at(1000, changed);
  story.at(3000, ended(1));
  const Usage usage = story.meter.usage({0}, {4000});
  REQUIRE_EQ(usage.rows.size(), 2);
  CHECK_EQ(usage.rows[0].account.gpu_model, "A100");
  CHECK_EQ(usage.rows[0].gpu_milli_ms, 1000 * 2000);
  CHECK_EQ(usage.rows[1].gpu_milli_ms, 1000 * 1000);
  REQUIRE_EQ(usage.fleet.size(), 2);
  CHECK_EQ(usage.fleet[0].capacity, 2 * 1000 * 3000);
  CHECK_EQ(usage.fleet[1].capacity, 2 * 1000 * 1000);
  CHECK_EQ(usage.fleet[1].idle, 1000 * 1000);
}

TEST_CASE("CPUs and memory are metered with the task's first GPU, or without a model") {
  Story story;
  story.at(0, node(0, 2));
  story.at(0, submitted(1, "a"));
  TaskPlacement with_gpu = on(0, {1});
  with_gpu.cpu_milli = 2500;
  with_gpu.memory_mib = 4096;
  TaskPlacement without = on(0, {});
  without.cpu_milli = 500;
  story.at(0, started(1, {with_gpu, without}, true));
  story.at(2000, ended(1));
  const Usage usage = story.meter.usage({0}, {4000});
  REQUIRE_EQ(usage.rows.size(), 2);
  CHECK_EQ(usage.rows[0].account.gpu_model, "");
  CHECK_EQ(micro_text(usage.rows[0].cpu_milli_ms), "1.000000");
  CHECK_EQ(micro_text(usage.rows[1].cpu_milli_ms), "5.000000");
  CHECK_EQ(usage.rows[1].memory_mib_ms, Int128{4096} * 2000);
}

TEST_CASE("micro units print as an exact decimal") {
  CHECK_EQ(micro_text(0), "0.000000");
  CHECK_EQ(micro_text(1), "0.000001");
  CHECK_EQ(micro_text(-1'500'000), "-1.500000");
  CHECK_EQ(micro_text(Int128{9'223'372'036'854'775'807} * 1000), "9223372036854775.807000");
}

TEST_CASE("an old window that is not on full hours is moved to them, and says so") {
  Story story;
  story.at(0, node(0, 1));
  story.at(0, submitted(1, "a"));
  story.at(kHourMs / 2, started(1, {on(0, {0})}, true));
  story.at(100 * kHourMs, ended(1));
  const Usage old = story.meter.usage({kHourMs / 4}, {3 * kHourMs + 1});
  CHECK_EQ(old.from, Timestamp{0});
  CHECK_EQ(old.to, Timestamp{3 * kHourMs});
  CHECK_EQ(old.rows.at(0).gpu_milli_ms, 1000 * (5 * kHourMs / 2));
  const Usage recent = story.meter.usage({80 * kHourMs + 7}, {90 * kHourMs + 9});
  CHECK_EQ(recent.rows.at(0).gpu_milli_ms, 1000 * (10 * kHourMs + 2));
}

}  // namespace berth::billing
