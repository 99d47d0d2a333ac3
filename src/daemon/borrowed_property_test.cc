// What is borrowed is told by the view of a job and of a queue, by metrics and by the bill. All must agree with what
// another queue may reclaim.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "api/routes/views.h"
#include "billing/meter.h"
#include "daemon/state_gauges.h"
#include "support/fleet_fixture.h"
#include "support/random_fleet.h"

namespace berth::daemon {

namespace {

using state::State;

struct Told {
  std::int64_t within = 0;
  std::int64_t borrowed = 0;
  bool operator==(const Told&) const = default;
};
using ByLeaf = std::map<std::string, Told>;  // in milli-GPUs, by path; leaves without GPUs in use are left out

// Returns true if the charge is in the list of borrowed charges of a queue on its path: reclaim reads these lists.
bool may_be_reclaimed(const State& state, const state::JobState& job, std::uint32_t index) {
  for (QueueId q = job.queue; q != state.root(); q = state.queue(q).parent) {
    if (state.queue(q).borrowed.contains({job.attempt->charges[index].order, job.id, index})) return true;
  }
  return false;
}

ByLeaf by_reclaim(State& state) {
  ByLeaf leaves;
  for (const JobId id : state.running()) {
    const state::JobState& job = *state.job(id);
    const auto& charges = job.attempt->charges;
    bool any = false;
    for (std::uint32_t c = 0; c < charges.size(); ++c) {
      const bool borrowed = may_be_reclaimed(state, job, c);
      any = any || borrowed;
      Told& told = leaves[state.queue(job.queue).path];
      (borrowed ? told.borrowed : told.within) += charges[c].amounts[kDimGpu];
    }
    const api::ShownJob shown = api::show_job(api::View{state, state.now(), {}, {}}, job);
    REQUIRE(shown.within.has_value());
    CHECK_EQ(*shown.within, !any);
  }
  std::erase_if(leaves, [](const auto& leaf) { return leaf.second == Told(); });
  return leaves;
}

std::int64_t milli_of(const boost::json::value& gpus) {
  return static_cast<std::int64_t>(std::llround(boost::json::value_to<double>(gpus) * 1000));
}

ByLeaf by_queue_view(const State& state) {
  ByLeaf leaves;
  for (const state::QueueState& queue : state.queues()) {
    if (queue.removed || !queue.is_leaf()) continue;
    const boost::json::object view = api::queue_view(state, queue);
    const Told told{milli_of(view.at("within").at("gpus")), milli_of(view.at("borrowed_gpus"))};
    if (!(told == Told())) leaves[queue.path] = told;
  }
  return leaves;
}

ByLeaf by_metrics(State& state, const ByLeaf& expected) {
  telemetry::Exposition out;
  add_gauges(api::View{state, state.now(), {}, [] { return GpuUtilization(); }}, out);
  const std::string text = "\n" + out.take();
  const auto value = [&](const std::string& gauge, const std::string& queue) {
    const std::string series = "\n" + gauge + "{queue=\"" + queue + "\"} ";
    const std::size_t at = text.find(series);
    REQUIRE(at != std::string::npos);
    return static_cast<std::int64_t>(std::llround(std::stod(text.substr(at + series.size())) * 1000));
  };
  ByLeaf leaves;
  for (const auto& [path, told] : expected) {
    const std::int64_t borrowed = value("berth_queue_borrowed_gpus", path);
    leaves[path] = {value("berth_queue_allocated_gpus", path) - borrowed, borrowed};
  }
  return leaves;
}

// What is billed for the next millisecond.
ByLeaf by_meter(const billing::Meter& meter) {
  ByLeaf leaves;
  const Timestamp now = meter.now();
  for (const billing::UsageRow& row : meter.usage(now, now + 1).rows) {
    if (row.gpu_milli_ms == 0) continue;
    Told& told = leaves[row.account.queue];
    (row.account.borrowed ? told.borrowed : told.within) += row.gpu_milli_ms;
  }
  return leaves;
}

std::string text_of(const ByLeaf& leaves) {
  std::string text;
  for (const auto& [path, told] : leaves)
    text += path + ": " + std::to_string(told.within) + " within, " + std::to_string(told.borrowed) + " borrowed; ";
  return text;
}

}  // namespace

TEST_CASE("the job, its queue, the metrics and the bill agree on what is borrowed") {
  int borrowed_below_guarantee = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    Fleet fleet(seed);
    billing::Meter meter;
    // The fleet was set up before its events could be seen, so the meter learns its nodes here.
    Seq seq = 0;
    for (const state::NodeState& node : fleet.state.nodes()) {
      meter.apply({++seq, fleet.state.now(), NodeRegistered{node.id, node.spec, {}}});
    }
    fleet.on_event = [&](const EventRecord& record) { meter.apply(record); };
    for (int step = 0; step < 40; ++step) {
      CAPTURE(step);
      fleet.live();
      const ByLeaf expected = by_reclaim(fleet.state);
      CHECK_EQ(text_of(by_queue_view(fleet.state)), text_of(expected));
      CHECK_EQ(text_of(by_metrics(fleet.state, expected)), text_of(expected));
      CHECK_EQ(text_of(by_meter(meter)), text_of(expected));
      for (const auto& [path, told] : expected) {
        const state::QueueState& leaf = *fleet.state.queue_at(path);
        if (told.borrowed > 0 && leaf.guaranteed.stated == 0) ++borrowed_below_guarantee;
      }
    }
  }
  CHECK_GT(borrowed_below_guarantee, 100);
}

}  // namespace berth::daemon
