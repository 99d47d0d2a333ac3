#pragma once
// A whole berth over a stand-in of an API server, for tests: the state, the scheduler and kube::Cluster as in the
// product; the test decides when watches arrive, which answers are lost, and when berth is killed.

#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "control/effects.h"
#include "control/iteration.h"
#include "kube/cluster.h"
#include "model/cluster_config.h"
#include "sched/cycle.h"
#include "state/state.h"
#include "support/stand_in_api_server.h"

namespace berth::kube {

struct KubernetesWorld {
  StandInServer server;
  state::State state;
  control::IterationMemory memory;
  Options options;
  Cluster cluster{options};
  std::vector<std::string> errors;  // of reports and submissions that the core refused
  Random* faults = nullptr;         // with it, requests and answers are lost, and watches are late
  std::vector<Request> late;        // requests without an answer that still arrive

  KubernetesWorld() {
    ClusterConfig config = default_cluster_config();
    config.queues.clear();
    for (const char* path : {"research", "research/nlp", "ads"}) config.queues.emplace_back().path = path;
    std::vector<Command> commands{ApplyConfig{config, "op"}};
    control::run_iteration(state, server.now, commands, memory, sched::run_cycle);
    list();
  }

  void list() {
    server.changes.clear();
    for (const Resource& resource : watched()) {
      cluster.begin_list(resource.kind);
      for (const auto& [name, object] : server.objects[resource.kind])
        cluster.observe(resource.kind, object, false, server.now);
      cluster.end_list(resource.kind, server.now);
    }
  }
  // berth is killed and starts again: what it knew of the cluster is lost, its state is not.
  void restart() {
    options.nodes.clear();
    for (const state::NodeState& node : state.nodes()) {
      if (node.status != NodeStatus::kLost) options.nodes.push_back({node.spec.name, node.spec.machine});
    }
    cluster = Cluster(options);
    memory = {};
    state.jobs().for_each([&](const state::JobState& job) {
      if (job.spec.comment.starts_with("kube/")) cluster.submitted(job.spec.comment, job.id, server.now);
    });
    for (const Effect& effect : control::all_effects(state)) cluster.perform(effect, server.now);
    list();
  }

  void watch() {
    while (!server.changes.empty()) {
      if (faults != nullptr && faults->chance(150)) return;  // the rest comes later
      const StandInServer::Change change = std::move(server.changes.front());
      server.changes.pop_front();
      cluster.observe(change.kind, change.object, change.deleted, server.now);
      if (faults != nullptr && faults->chance(100))  // told twice
        cluster.observe(change.kind, change.object, change.deleted, server.now);
    }
  }
  void send(const Request& request) {
    if (faults != nullptr && faults->chance(100)) {  // no answer, and it arrives later or never
      if (faults->chance(700)) late.push_back(request);
      return cluster.answered(request.id, 0, "", server.now);
    }
    const StandInServer::Answer answer = server.answer(request);
    const bool lost = faults != nullptr && faults->chance(200);
    if (!lost && faults != nullptr && faults->chance(50)) return cluster.answered(request.id, 500, "", server.now);
    cluster.answered(request.id, lost ? 0 : answer.status, lost ? "" : answer.body, server.now);
  }
  void decide(std::vector<Command> commands) {
    bool again = true;
    while (again) {
      const control::Iteration done = control::run_iteration(state, server.now, commands, memory, sched::run_cycle);
      for (std::size_t i = 0; i < commands.size(); ++i) {
        const auto& reply = done.replies[i];
        if (!reply) errors.push_back(reply.error().message);
        const auto* submit = std::get_if<SubmitJob>(&commands[i]);
        if (submit == nullptr) continue;
        if (reply) cluster.submitted(submit->key, reply->job, server.now);
        if (!reply) cluster.refused(submit->key, reply.error().message, server.now);
      }
      for (const Effect& effect : control::effects_of(state, done.records)) cluster.perform(effect, server.now);
      for (const control::FinishedJob& job : done.finished_jobs)
        cluster.finished(job.job.id, job.how.outcome == Outcome::kCancelled, server.now);
      again = done.again;
      commands.clear();
    }
  }
  void step() {
    watch();
    Output output = cluster.take();
    decide(std::move(output.commands));
    for (const Request& request : output.requests) send(request);
  }
  // Lets everything settle, without time passing.
  void settle() {
    for (int i = 0; i < 8; ++i) step();
  }
  void pass(std::int64_t seconds) {
    for (std::int64_t i = 0; i < seconds; ++i) {
      server.now = server.now + 1000;
      cluster.tick(server.now);
      step();
    }
  }
  const state::JobState* job(std::uint64_t id) const { return state.job(JobId(id)); }
};

}  // namespace berth::kube
