#include "control/iteration.h"

#include <doctest/doctest.h>

#include "sched/cycle.h"

namespace berth {
namespace {

struct Loop {
  state::State state;
  control::IterationMemory memory;
  Timestamp now{1'000'000};

  control::Iteration iteration(std::vector<Command> commands = {}) {
    return control::run_iteration(state, now, commands, memory, sched::run_cycle);
  }
};

ClusterConfig two_teams(std::int64_t min_runtime_s) {
  ClusterConfig config = default_cluster_config();
  config.gpu_models = {{"H100", 1000, 81'920}};
  config.queues.clear();
  for (const char* path : {"a", "b"}) {
    QueueConfig queue;
    queue.path = path;
    queue.guaranteed.gpu_milli = 4000;
    config.queues.push_back(queue);
  }
  config.scheduling.min_runtime_s = min_runtime_s;
  return config;
}

NodeSpec eight_gpus() {
  NodeSpec node;
  node.name = "n1";
  node.cpu_milli = 64'000;
  node.memory_mib = 512 * 1024;
  for (int i = 0; i < 8; ++i) {
    Gpu gpu;
    gpu.uuid = "GPU-" + std::to_string(i);
    gpu.model = "H100";
    node.gpus.push_back(gpu);
  }
  return node;
}

SubmitJob job_in(const std::string& queue, std::int32_t gpus) {
  JobSpec spec;
  spec.name = "job";
  spec.queue = queue;
  spec.user = "ann";
  TaskGroup group;
  group.request.gpus = gpus;
  group.command = {"true"};
  spec.groups.push_back(group);
  return {spec, ""};
}

// The queues q0, q1, and so on; with a ceiling they are branch/q0 and so on, and the ceiling is the branch's max.
ClusterConfig many_queues(std::size_t count, std::optional<std::int64_t> ceiling_milli = {}) {
  ClusterConfig config = two_teams(0);
  config.queues.clear();
  if (ceiling_milli) {
    QueueConfig branch;
    branch.path = "branch";
    branch.max.gpu_milli = ceiling_milli;
    config.queues.push_back(branch);
  }
  for (std::size_t q = 0; q < count; ++q) {
    QueueConfig queue;
    queue.path = (ceiling_milli ? "branch/q" : "q") + std::to_string(q);
    config.queues.push_back(queue);
  }
  return config;
}

}  // namespace

TEST_CASE("a turn answers every command and starts what fits") {
  Loop loop;
  const auto iteration = loop.iteration(
      {ApplyConfig{two_teams(0), "op"}, RegisterNode{eight_gpus()}, job_in("a", 4), job_in("nowhere", 1)});
  REQUIRE_EQ(iteration.replies.size(), 4);
  CHECK(iteration.replies[2].has_value());
  CHECK_FALSE(iteration.replies[3].has_value());
  CHECK(loop.state.job(JobId(1))->phase == JobPhase::kRunning);
  CHECK_EQ(iteration.records.back().seq, loop.state.last_seq());
}

TEST_CASE("nothing new, no cycle") {
  Loop loop;
  loop.iteration({ApplyConfig{two_teams(0), "op"}, RegisterNode{eight_gpus()}, job_in("a", 4)});
  CHECK_FALSE(loop.iteration().cycle_ran);
}

TEST_CASE("a claim that waits for a victim's minimum run time is served when it is over, without any other event") {
  Loop loop;
  loop.iteration({ApplyConfig{two_teams(60), "op"}, RegisterNode{eight_gpus()}, job_in("b", 8)});
  const auto waits = loop.iteration({job_in("a", 4)});
  CHECK(loop.state.job(JobId(1))->phase == JobPhase::kRunning);
  CHECK_EQ(waits.wake_at.ms, loop.now.ms + 60'000);
  loop.now = waits.wake_at;
  loop.iteration();
  CHECK(loop.state.job(JobId(1))->phase == JobPhase::kStopping);
}

TEST_CASE("a claim that nobody can serve yet is not asked again because somebody else submits") {
  Loop loop;
  loop.iteration({ApplyConfig{two_teams(60), "op"}, RegisterNode{eight_gpus()}, job_in("b", 8)});
  const Timestamp evictable = loop.iteration({job_in("a", 4)}).wake_at;
  loop.now = loop.now + 1000;
  const auto other = loop.iteration({job_in("b", 8)});
  CHECK_EQ(other.plan.scheduling_attempts, 1);
  CHECK_EQ(other.wake_at.ms, evictable.ms);
  // A change of what runs activates it: the job that ended might have blocked it.
  loop.iteration({ReportTaskExited{{JobId(1), 1, 0, 1, ExitReason::kExited, 0, ""}}});
  CHECK(loop.state.job(JobId(2))->phase == JobPhase::kRunning);
}

TEST_CASE("of many queues that ask the same, a cycle asks the one that gets it") {
  constexpr std::size_t kQueues = 40;
  Loop loop;
  const ClusterConfig config = many_queues(kQueues);
  loop.iteration({ApplyConfig{config, "op"}, RegisterNode{eight_gpus()}});
  for (std::size_t q = 0; q < kQueues; ++q) loop.iteration({job_in("q" + std::to_string(q), 8)});
  CHECK(loop.state.job(JobId(1))->phase == JobPhase::kRunning);
  const auto next = loop.iteration({ReportTaskExited{{JobId(1), 1, 0, 1, ExitReason::kExited, 0, ""}}});
  CHECK(loop.state.job(JobId(2))->phase == JobPhase::kRunning);
  CHECK_EQ(next.plan.decisions.size(), 1);
  CHECK_EQ(next.plan.scheduling_attempts, 1);
  CHECK_LT(next.plan.nodes_scored, 20);
}

TEST_CASE("of many queues that one ceiling holds back, a cycle asks the one that gets its room") {
  constexpr std::size_t kQueues = 40;
  Loop loop;
  const ClusterConfig config = many_queues(kQueues, 4000);
  loop.iteration({ApplyConfig{config, "op"}, RegisterNode{eight_gpus()}});
  for (std::size_t q = 0; q < kQueues; ++q) loop.iteration({job_in("branch/q" + std::to_string(q), 4)});
  CHECK(loop.state.job(JobId(1))->phase == JobPhase::kRunning);
  // To quota the other queues are all alike.
  const QueueId branch = loop.state.queue_at("branch")->id;
  REQUIRE_EQ(loop.state.waits().waiting_for(branch).size(), 1);
  CHECK_EQ(loop.state.waits().waiting_for(branch).front()->parked_classes.size(), kQueues - 1);
  const auto next = loop.iteration({ReportTaskExited{{JobId(1), 1, 0, 1, ExitReason::kExited, 0, ""}}});
  CHECK(loop.state.job(JobId(2))->phase == JobPhase::kRunning);
  CHECK_EQ(next.plan.decisions.size(), 1);
  CHECK_EQ(next.plan.scheduling_attempts, 1);
  // No class has a guarantee or a lower priority to evict from, so no search for victims begins.
  CHECK_LT(next.plan.nodes_scored, 10);
  // The other classes were signalled, because there was room. The next cycle parks them again without evaluating them.
  CHECK_EQ(loop.state.waits().active_count(), kQueues - 2);
  const auto other = loop.iteration({job_in("branch/q0", 2)});
  CHECK_EQ(other.plan.scheduling_attempts, 1);
  CHECK_EQ(loop.state.waits().active_count(), 0);
  CHECK_EQ(loop.state.audit().value_or(""), "");
  // They are not forgotten.
  loop.iteration({ReportTaskExited{{JobId(2), 1, 0, 1, ExitReason::kExited, 0, ""}}});
  CHECK(loop.state.job(JobId(3))->phase == JobPhase::kRunning);
}

TEST_CASE("who has a rule of his own waits for a shared ceiling apart from the others") {
  Loop loop;
  ClusterConfig config = many_queues(6, 4000);
  config.queues[0].guaranteed.gpu_milli = 1000;  // the branch
  config.queues[1].max.gpu_milli = 5000;
  config.queues[2].guaranteed.gpu_milli = 1000;
  loop.iteration({ApplyConfig{config, "op"}, RegisterNode{eight_gpus()}, job_in("branch/q5", 4)});
  for (std::size_t q = 0; q < 6; ++q) loop.iteration({job_in("branch/q" + std::to_string(q), 4)});
  const QueueId branch = loop.state.queue_at("branch")->id;
  CHECK_EQ(loop.state.waits().waiting_for(branch).size(), 3);
  const auto rules_from = [&](const char* path) {
    return loop.state.quota_path_of(loop.state.queue_at(path)->id).rules_from;
  };
  CHECK(rules_from("branch/q0") == loop.state.queue_at("branch/q0")->id);
  CHECK(rules_from("branch/q3") == branch);
}

TEST_CASE("once only one queue could start anything, the others are not asked before it") {
  constexpr std::size_t kQueues = 40;
  Loop loop;
  loop.iteration({ApplyConfig{many_queues(kQueues, 4000), "op"}, RegisterNode{eight_gpus()}, job_in("branch/q0", 4)});
  for (std::size_t q = 0; q + 1 < kQueues; ++q) loop.iteration({job_in("branch/q" + std::to_string(q), 3)});
  loop.iteration({job_in("branch/q" + std::to_string(kQueues - 1), 1)});
  // Three of the four GPUs go to the first job. The rest is enough for the last one only, which all others precede.
  const auto next = loop.iteration({ReportTaskExited{{JobId(1), 1, 0, 1, ExitReason::kExited, 0, ""}}});
  CHECK_EQ(next.plan.decisions.size(), 2);
  CHECK(loop.state.job(JobId(2))->phase == JobPhase::kRunning);
  CHECK(loop.state.job(JobId(kQueues + 1))->phase == JobPhase::kRunning);
  CHECK_EQ(next.plan.scheduling_attempts, 2);
}

TEST_CASE(
    "a node that becomes free wakes nobody who may not use its GPUs, and those it cannot serve sleep again unasked") {
  constexpr std::size_t kQueues = 40;
  Loop loop;
  ClusterConfig config = many_queues(kQueues);
  config.gpu_models.push_back({"A100", 500, 81'920});
  NodeSpec other = eight_gpus();
  other.name = "n2";
  for (Gpu& gpu : other.gpus) {
    gpu.uuid = "other-" + gpu.uuid;
    gpu.model = "A100";
  }
  loop.iteration({ApplyConfig{config, "op"}, RegisterNode{eight_gpus()}, RegisterNode{other}});
  const auto job_on = [](const std::string& queue, const std::string& model) {
    SubmitJob submit = job_in(queue, 8);
    submit.spec.groups.front().request.gpu_models = {model};
    return submit;
  };
  loop.iteration({job_on("q0", "H100"), job_on("q0", "A100")});
  for (std::size_t q = 0; q < kQueues; ++q) loop.iteration({job_on("q" + std::to_string(q), "H100")});
  CHECK_EQ(loop.state.waits().active_count(), 0);
  const auto elsewhere = loop.iteration({ReportTaskExited{{JobId(2), 1, 0, 1, ExitReason::kExited, 0, ""}}});
  CHECK_EQ(elsewhere.plan.scheduling_attempts, 0);
  loop.iteration({ReportTaskExited{{JobId(1), 1, 0, 1, ExitReason::kExited, 0, ""}}});
  CHECK(loop.state.job(JobId(3))->phase == JobPhase::kRunning);
  CHECK_EQ(loop.state.waits().active_count(), kQueues - 1);
  const auto next = loop.iteration({job_on("q0", "A100")});  // it finds its place
  CHECK_EQ(next.plan.decisions.size(), 1);
  CHECK_EQ(next.plan.scheduling_attempts, 1);
  CHECK_EQ(loop.state.waits().active_count(), 0);
  CHECK_EQ(loop.state.audit().value_or(""), "");
  loop.iteration({ReportTaskExited{{JobId(3), 1, 0, 1, ExitReason::kExited, 0, ""}}});
  CHECK(loop.state.job(JobId(4))->phase == JobPhase::kRunning);
}

}  // namespace berth
