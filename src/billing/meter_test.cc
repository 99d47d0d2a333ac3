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

TEST_CASE("a saved and loaded meter goes on the same") {
  Story story;
  story.at(0, node(0, 4));
  story.at(5, submitted(1, "a"));
  story.at(7, started(1, {on(0, {0, 3})}, false));
  auto loaded = Meter::load(story.meter.save());
  REQUIRE(loaded.has_value());
  CHECK_EQ(loaded->save(), story.meter.save());
  CHECK_EQ(loaded->usage({0}, {100}).rows.at(0).gpu_milli_ms, 2 * 1000 * 93);
  CHECK_FALSE(Meter::load("nonsense").has_value());
}

TEST_CASE("folding old steps into hours changes no integral over whole hours") {
  Random random(7);
  StepSeries series;
  std::vector<std::pair<std::int64_t, std::int64_t>> changes;
  std::int64_t time = 5;
  for (int i = 0; i < 50'000; ++i) {
    time += random.between(1, 4000);
    const std::int64_t delta = random.between(-5, 6);
    series.add({time}, delta);
    changes.emplace_back(time, delta);
  }
  CHECK_GT(series.exact_from().ms, 0);
  constexpr std::int64_t kHour = StepSeries::kHourMs;
  for (int window = 0; window < 20; ++window) {
    const std::int64_t from = random.between(0, time / kHour - 1) * kHour;
    const std::int64_t to = from + random.between(1, 5) * kHour;
    std::int64_t naive = 0;
    for (const auto& [at, delta] : changes) {
      if (at < to) naive += delta * (to - std::max(at, from));
    }
    CHECK_EQ(series.integral({from}, {to}), naive);
  }
}

}  // namespace berth::billing
