// Properties of the state and of commands, over random lives (rapidcheck picks the seeds and shrinks the lengths).

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "control/handle.h"
#include "sched/cycle.h"
#include "sim/world/simulation.h"
#include "store/event_codec.h"

namespace berth::sim {
namespace {

void live(Simulation& simulation, std::uint64_t steps) {
  while (simulation.steps() < steps && !simulation.violation()) simulation.step();
  simulation.world().settle();
}

SimulationShape small() {
  SimulationShape shape;
  shape.most_nodes = 8;
  shape.most_queues = 12;
  shape.live_jobs = 30;
  return shape;
}

std::uint64_t some_seed() { return *rc::gen::inRange<std::uint64_t>(1, 1'000'000); }
std::uint64_t some_steps() { return *rc::gen::inRange<std::uint64_t>(1, 120); }

state::State replay(const store::Log& log) {
  state::State state;
  const auto read = log.read(1, [&](const store::Record& record) -> Result<bool> {
    state.apply(*store::to_event(record));
    return true;
  });
  RC_ASSERT(read.has_value());
  return state;
}

}  // namespace

TEST_CASE("replaying the log gives the live state, and loading a saved state too") {
  CHECK(rc::check([] {
    Simulation simulation(some_seed(), small());
    live(simulation, some_steps());
    const std::uint64_t live_digest = simulation.world().working().digest();
    RC_ASSERT(replay(simulation.world().log()).digest() == live_digest);
    const auto loaded = state::State::load(simulation.world().working().save());
    RC_ASSERT(loaded.has_value());
    RC_ASSERT(loaded->digest() == live_digest);
    RC_ASSERT(!loaded->audit().has_value());
    RC_ASSERT(!simulation.world().working().audit().has_value());
  }));
}

TEST_CASE("a loaded state decides as the live one does") {
  CHECK(rc::check([] {
    Simulation simulation(some_seed(), small());
    live(simulation, some_steps());
    state::State& working = simulation.world().working();
    auto loaded = state::State::load(working.save());
    RC_ASSERT(loaded.has_value());
    const Timestamp now = simulation.world().now() + 1;
    RC_ASSERT(control::plan_hash(sched::run_cycle(working, now)) == control::plan_hash(sched::run_cycle(*loaded, now)));
  }));
}

TEST_CASE("a cycle leaves the state as it was") {
  CHECK(rc::check([] {
    Simulation simulation(some_seed(), small());
    live(simulation, some_steps());
    state::State& working = simulation.world().working();
    const std::uint64_t before = working.digest();
    sched::run_cycle(working, simulation.world().now() + 1);
    RC_ASSERT(working.digest() == before);
    RC_ASSERT(!working.audit().has_value());
  }));
}

TEST_CASE("a refused command changes nothing") {
  CHECK(rc::check([] {
    Simulation simulation(some_seed(), small());
    live(simulation, some_steps());
    state::State& working = simulation.world().working();
    const JobId job(*rc::gen::inRange<std::uint64_t>(0, 200));
    const auto number = *rc::gen::arbitrary<std::int32_t>();
    const auto small_number = *rc::gen::inRange<std::uint32_t>(0, 12);
    const std::string name = *rc::gen::arbitrary<std::string>();
    JobSpec spec;
    spec.name = name;
    spec.queue = *rc::gen::element<std::string>("q0", "q0/q0", "", "nowhere", name);
    spec.user = name;
    spec.groups.resize(small_number % 3);
    for (TaskGroup& group : spec.groups) {
      group.count = number;
      group.min_count = number / 2;
      group.command = {name};
      group.request.gpus = number % 20;
      group.request.gpu_milli = number % 1100;
      group.request.cpu_milli = std::int64_t{number} * number;
    }
    const std::vector<Command> commands = {
        SubmitJob{spec, name},
        CancelJob{job, name},
        HoldJob{job, number % 2 == 0, name},
        PrioritizeJob{job, number, name},
        CordonNode{name, true, true, name},
        FenceNode{"n" + std::to_string(small_number), name},
        ReportNodeStatus{name, NodeStatus::kLost, name},
        ReportGpuHealth{"n0", static_cast<std::uint8_t>(number), false, name},
        ReportTaskStarted{job, small_number, small_number, small_number},
        ReportTaskExited{{job, small_number, small_number, small_number, ExitReason::kExited, number, name}},
        ReportCheckpoint{job, small_number, number},
    };
    for (const Command& command : commands) {
      const std::uint64_t before = working.digest();
      control::Batch batch(working, simulation.world().now());
      const auto reply = control::handle(batch, command);
      RC_ASSERT(reply.has_value() || working.digest() == before);
      RC_ASSERT(reply.has_value() || batch.records().empty());
    }
    RC_ASSERT(!working.audit().has_value());
  }));
}

TEST_CASE("the order in which unlike queues and equal reports arrive changes no decision about a job") {
  // Jobs of one batch in different queues, all fitting: whatever their order, the same set starts.
  CHECK(rc::check([] {
    const auto order = *rc::gen::container<std::vector<std::uint32_t>>(3, rc::gen::arbitrary<std::uint32_t>());
    const auto started = [](std::vector<std::size_t> queues) {
      state::State state;
      control::TurnMemory memory;
      ClusterConfig config = default_cluster_config();
      config.queues.clear();
      for (const char* path : {"a", "b", "c"}) {
        QueueConfig queue;
        queue.path = path;
        queue.guaranteed.gpu_milli = 2000;
        config.queues.push_back(queue);
      }
      NodeSpec node;
      node.name = "n";
      node.cpu_milli = 64'000;
      node.memory_mib = 1024;
      for (int g = 0; g < 6; ++g) {
        Gpu gpu;
        gpu.uuid = "GPU-" + std::to_string(g);
        gpu.model = "H100";
        node.gpus.push_back(gpu);
      }
      std::vector<Command> commands = {ApplyConfig{config, "operator"}, RegisterNode{node}};
      for (const std::size_t queue : queues) {
        JobSpec spec;
        spec.name = std::string(1, static_cast<char>('a' + queue));
        spec.queue = spec.name;
        spec.user = "ann";
        TaskGroup group;
        group.command = {"train"};
        group.request.gpus = 2;
        spec.groups.push_back(group);
        commands.emplace_back(SubmitJob{spec, {}});
      }
      control::run_turn(state, Timestamp{1000}, commands, memory, sched::run_cycle);
      std::vector<std::string> names;
      for (const JobId job : state.running()) names.push_back(state.job(job)->spec.name);
      std::sort(names.begin(), names.end());
      return names;
    };
    std::vector<std::size_t> queues = {0, 1, 2};
    std::sort(queues.begin(), queues.end(),
              [&](std::size_t a, std::size_t b) { return std::tie(order[a], a) < std::tie(order[b], b); });
    RC_ASSERT(started(queues) == started({0, 1, 2}));
    RC_ASSERT(started(queues).size() == 3);
  }));
}

}  // namespace berth::sim
