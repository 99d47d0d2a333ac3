#pragma once
// A fleet for tests of the protocol alone, without a scheduler: the test sends commands and decides itself which job
// starts on which node.

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "control/commit.h"
#include "control/handle.h"
#include "control/reconcile.h"
#include "model/cluster_config.h"
#include "state/state.h"

namespace berth::control {

struct HandDrivenFleet {
  state::State state;
  Timestamp now{1'000'000};

  static QueueConfig queue(const std::string& path, std::int64_t guaranteed_gpus = 0) {
    QueueConfig config;
    config.path = path;
    if (guaranteed_gpus > 0) config.guaranteed.gpu_milli = guaranteed_gpus * kMilli;
    return config;
  }

  void configure(std::vector<QueueConfig> queues, std::vector<PoolConfig> pools = {}) {
    ClusterConfig config = default_cluster_config();
    config.gpu_models = {{"H100", 1000, 81'920}};
    config.queues = std::move(queues);
    for (PoolConfig& pool : pools) config.pools.push_back(std::move(pool));
    command(ApplyConfig{config, "op"});
  }

  // Returns a node with eight H100 GPUs.
  NodeSpec node(const std::string& name, const std::string& pool = "default") {
    NodeSpec spec;
    spec.name = name;
    spec.pool = pool;
    spec.cpu_milli = 64'000;
    spec.memory_mib = 512 * 1024;
    for (int i = 0; i < 8; ++i) {
      Gpu gpu;
      gpu.uuid = name + "-" + std::to_string(i);
      gpu.model = "H100";
      spec.gpus.push_back(gpu);
    }
    return spec;
  }

  static JobSpec job(const std::string& queue, std::int32_t gpus, std::int64_t cpu_milli = 1000) {
    JobSpec spec;
    spec.name = "job";
    spec.queue = queue;
    spec.user = "ann";
    spec.groups.emplace_back().command = {"true"};
    spec.groups.front().request.gpus = gpus;
    spec.groups.front().request.cpu_milli = cpu_milli;
    return spec;
  }

  Result<Reply> try_command(const Command& command) {
    Batch batch(state, now);
    auto reply = handle(batch, command);
    reconcile(batch);
    return reply;
  }
  Reply command(const Command& command) {
    const auto reply = try_command(command);
    REQUIRE_MESSAGE(reply.has_value(), (reply ? "" : reply.error().message));
    return *reply;
  }
  JobId submit(const JobSpec& spec) { return command(SubmitJob{spec, ""}).job; }

  // Returns a placement for the only task of the job: as many GPUs of the node as it requests, from index `first` on.
  TaskPlacement place(JobId job, const std::string& node, std::uint8_t first) const {
    const TaskRequest& request = state.job(job)->spec.groups.front().request;
    TaskPlacement placement;
    placement.node = state.node_named(node)->id;
    placement.cpu_milli = request.cpu_milli;
    placement.gpu_milli = static_cast<std::int32_t>(kMilli);
    for (std::int32_t g = 0; g < request.gpus; ++g) placement.gpus.push_back(static_cast<std::uint8_t>(first + g));
    return placement;
  }
  void decide(Decision decision) {
    Batch batch(state, now);
    Plan plan;
    plan.decisions.push_back(std::move(decision));
    commit(batch, plan);
    reconcile(batch);
  }
  JobId start(const JobSpec& spec, const std::string& node, std::uint8_t first) {
    const JobId id = submit(spec);
    decide(StartDecision{id, {place(id, node, first)}});
    return id;
  }
  void exit(JobId job) { command(ReportTaskExited{{job, state.job(job)->attempts, 0, 1, ExitReason::kExited, 0, ""}}); }

  void pass(std::int64_t seconds) {
    now = now + seconds * 1000;
    Batch batch(state, now);
    reconcile(batch);
  }

  // Returns true if the first charge of the running job is within the guarantee of its ancestor `queue`.
  bool within(JobId job, const std::string& queue) const {
    const std::uint32_t depth = state.queue_at(queue)->depth;
    return (state.job(job)->attempt->charges.front().within >> depth & 1U) != 0;
  }
  bool stopping(JobId job) const { return state.job(job)->attempt->stopping(); }
};

}  // namespace berth::control
