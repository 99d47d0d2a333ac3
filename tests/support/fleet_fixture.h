#pragma once
// A small fleet for tests. The test sends commands and decides when a cycle runs. After each cycle, the fixture checks
// that the cycle left the state unchanged.

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "control/commit.h"
#include "control/handle.h"
#include "control/reconcile.h"
#include "sched/cycle.h"

namespace berth {

struct FleetFixture {
  state::State state;
  Timestamp now{1'000'000};

  static QueueConfig queue(const std::string& path) {
    QueueConfig config;
    config.path = path;
    return config;
  }

  static ClusterConfig config(std::vector<QueueConfig> queues) {
    ClusterConfig config = default_cluster_config();
    config.gpu_models = {{"A100", 500, 81'920}, {"H100", 1000, 81'920}};
    config.queues = std::move(queues);
    return config;
  }

  static NodeSpec node(const std::string& name, std::int32_t gpus, const std::string& model = "H100") {
    NodeSpec node;
    node.name = name;
    node.cpu_milli = 64'000;
    node.memory_mib = 512 * 1024;
    for (std::int32_t i = 0; i < gpus; ++i) {
      Gpu gpu;
      gpu.uuid = name + "-" + std::to_string(i);
      gpu.model = model;
      node.gpus.push_back(gpu);
    }
    return node;
  }

  static JobSpec job(const std::string& queue, std::int32_t tasks, std::int32_t gpus) {
    JobSpec spec;
    spec.name = "job";
    spec.queue = queue;
    spec.user = "ann";
    TaskGroup group;
    group.count = tasks;
    group.request.gpus = gpus;
    group.request.cpu_milli = 1000;
    group.command = {"true"};
    spec.groups.push_back(group);
    return spec;
  }

  control::Reply command(const Command& command) {
    control::Batch batch(state, now);
    auto reply = control::handle(batch, command);
    REQUIRE_MESSAGE(reply.has_value(), (reply ? "" : reply.error().message));
    control::reconcile(batch);
    return *reply;
  }

  JobId submit(const JobSpec& spec) { return command(SubmitJob{spec, ""}).job; }

  Plan cycle() {
    control::Batch batch(state, now);
    const std::uint64_t before = state.digest();
    Plan plan = sched::run_cycle(state, now);
    CHECK_EQ(state.digest(), before);
    control::commit(batch, plan);
    control::reconcile(batch);
    return plan;
  }

  // Reports the exit of every task of the running job.
  void exit(JobId job, std::int32_t code) {
    const auto& attempt = *state.job(job)->attempt;
    const std::uint32_t number = attempt.number;
    const std::size_t tasks = attempt.tasks.size();
    for (std::uint32_t i = 0; i < tasks; ++i) {
      command(ReportTaskExited{{job, number, i, 1, ExitReason::kExited, code, ""}});
    }
  }

  // Returns the nodes of its tasks in rank order, "n1 n1 n2", or "waits".
  std::string nodes_of(JobId job) const {
    std::string names;
    if (!runs(job)) return "waits";
    for (const auto& task : state.job(job)->attempt->tasks)
      names += (names.empty() ? "" : " ") + state.node(task.placement.node).spec.name;
    return names;
  }

  bool runs(JobId job) const { return state.job(job) != nullptr && state.job(job)->attempt.has_value(); }
};

}  // namespace berth
