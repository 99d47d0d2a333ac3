// Properties of the state and of commands, over random lives (rapidcheck picks the seeds and shrinks the lengths).

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "control/handle.h"
#include "explain/move_refusal.h"
#include "sched/cycle.h"
#include "sim/world/simulation.h"
#include "store/event_codec.h"

namespace berth::sim {
namespace {

void live(Simulation& simulation, std::uint64_t steps) {
  while (simulation.steps() < steps && !simulation.violation()) simulation.step();
  simulation.world().reconcile();
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
    // A world whose clock was set back is behind its last event; no cycle runs before that.
    const Timestamp now = std::max(simulation.world().now(), working.now()) + 1;
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
        ReportNodeImages{"n" + std::to_string(small_number), {name}},
        ReportTaskStarted{job, small_number, small_number, small_number},
        ReportTaskExited{{job, small_number, small_number, small_number, ExitReason::kExited, number, name}},
        ReportCheckpoint{job, small_number, number},
        MoveJob{job, {}, number % 2 == 0, name},
        MoveJob{job, {"n" + std::to_string(small_number), name}, true, name},
    };
    for (const Command& command : commands) {
      const std::uint64_t before = working.digest();
      control::Batch batch(working, simulation.world().now());
      const auto reply = control::handle(batch, command, explain::find_move_target);
      RC_ASSERT(reply.has_value() || working.digest() == before);
      RC_ASSERT(reply.has_value() || batch.records().empty());
    }
    RC_ASSERT(!working.audit().has_value());
  }));
}

namespace {

// A fleet of equal nodes, a tree of queues and two batches of jobs, each job of a priority of its own, so that no tie
// is left to ids. Queues are listed and nodes join in an order that `shuffle` picks. With best fit jobs arrive so, too;
// the score by fragmentation learns from the jobs in the order of their arrival, so that order is part of its input.
class ShuffledLife {
 public:
  ShuffledLife(std::uint64_t seed, std::uint64_t shuffle, NodeScore score)
      : random_(seed), shuffle_(shuffle), score_(score) {}

  // What became of each job, by its name.
  std::map<std::string, std::string> run() {
    ClusterConfig config = default_cluster_config();
    config.queues.clear();
    for (const char* path : {"a", "a/x", "a/y", "b", "b/x", "b/y", "c"}) add_queue(config, path);
    for (int p = 0; p < kJobs; ++p) config.priority_classes.push_back({"p" + std::to_string(p), 10 * p + 1, false});
    config.scheduling.backfill_reservations = 0;
    config.scheduling.score = score_;
    std::vector<Command> nodes;
    for (int n = 0; n < 4; ++n) nodes.emplace_back(RegisterNode{node(n)});
    std::vector<Command> first;
    std::vector<Command> second;
    for (int j = 0; j < kJobs; ++j) (j < kJobs / 2 ? first : second).emplace_back(SubmitJob{job(j), {}});
    mix(config.queues);
    const auto is_top = [](const QueueConfig& queue) { return queue.path.find('/') == std::string::npos; };
    std::stable_partition(config.queues.begin(), config.queues.end(), is_top);  // parents come before their children
    mix(nodes);
    if (score_ == NodeScore::kBestFit) {
      mix(first);
      mix(second);
    }
    iteration({ApplyConfig{config, "operator"}});
    iteration(nodes);
    iteration(first);
    iteration(second);
    return told();
  }

 private:
  static constexpr int kJobs = 16;

  void add_queue(ClusterConfig& config, const char* path) {
    QueueConfig queue;
    queue.path = path;
    if (queue.path.find('/') == std::string::npos) queue.guaranteed.gpu_milli = random_.between(0, 6) * 1000;
    queue.weight = random_.between(1, 3);
    config.queues.push_back(queue);
  }

  static NodeSpec node(int number) {
    NodeSpec node;
    node.name = "n" + std::to_string(number);
    node.cpu_milli = 64'000;
    node.memory_mib = 65'536;
    for (int g = 0; g < 4; ++g) {
      Gpu gpu;
      gpu.uuid = "GPU-" + std::to_string(number) + "-" + std::to_string(g);
      gpu.model = "H100";
      node.gpus.push_back(gpu);
    }
    return node;
  }

  JobSpec job(int number) {
    JobSpec spec;
    spec.name = "j" + std::to_string(number);
    spec.queue = random_.pick(std::vector<std::string>{"a/x", "a/y", "b/x", "b/y", "c"});
    spec.user = "ann";
    // The second batch takes every other priority, so that it preempts some of the first.
    spec.priority_class = "p" + std::to_string(number < kJobs / 2 ? 2 * number : 2 * (number - kJobs / 2) + 1);
    TaskGroup group;
    group.command = {"train"};
    group.count = static_cast<std::int32_t>(random_.between(1, 2));
    group.request.gpus = static_cast<std::int32_t>(random_.between(1, 4));
    spec.groups.push_back(group);
    return spec;
  }

  template <class T>
  void mix(std::vector<T>& list) {
    for (std::size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[shuffle_.below(i)]);
  }

  void iteration(const std::vector<Command>& commands) {
    now_ = now_ + 60'000;
    const auto iteration = control::run_iteration(state_, now_, commands, memory_, sched::run_cycle);
    for (const auto& reply : iteration.replies) REQUIRE_MESSAGE(reply, (reply ? "" : reply.error().message));
  }

  std::map<std::string, std::string> told() const {
    std::map<std::string, std::string> told;
    state_.jobs().for_each([&](const state::JobState& one) {
      std::string what = "waits";
      if (one.attempt) what = "runs " + std::to_string(one.attempt->charges.front().within);
      if (one.attempt && one.attempt->stop) what = "leaves for " + state_.job(one.attempt->stop->preemptor)->spec.name;
      if (one.nomination) what = "is promised";
      told[one.spec.name] = what;
    });
    return told;
  }

  Random random_;
  Random shuffle_;
  NodeScore score_;
  state::State state_;
  control::IterationMemory memory_;
  Timestamp now_{1000};
};

}  // namespace

TEST_CASE("the order in which queues are listed, nodes join and jobs arrive changes no decision") {
  for (const NodeScore score : {NodeScore::kBestFit, NodeScore::kFragmentation}) {
    std::map<std::string, int> met;
    for (std::uint64_t seed = 1; seed <= 300; ++seed) {
      const auto told = ShuffledLife(seed, 1, score).run();
      for (std::uint64_t shuffle = 2; shuffle <= 4; ++shuffle) {
        const auto shuffled = ShuffledLife(seed, shuffle, score).run();
        CAPTURE(name_of(score));
        CAPTURE(seed);
        CAPTURE(shuffle);
        CHECK(shuffled == told);
      }
      for (const auto& [job, what] : told) ++met[what.substr(0, 5)];
    }
    // It is about something: all that can become of a job has.
    for (const char* what : {"waits", "runs ", "leave", "is pr"}) CHECK_GT(met[what], 100);
  }
}

}  // namespace berth::sim
