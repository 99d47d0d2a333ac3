#pragma once
// A whole berth over a stand-in of an API server, for tests: the state, the scheduler and kube::Cluster as in the
// product; the test decides when watches arrive, which answers are lost, and when berth is killed.

#include <map>
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
  // With it, requests and answers are lost, refused or late, in any order, and so are watches and lists.
  Random* faults = nullptr;
  std::vector<Request> late;  // requests without an answer that still arrive
  std::map<JobId, Outcome> outcomes;
  Timestamp denies_until;  // the API server has not read its roles
  struct UnderWay {
    Request request;
    bool done = false;  // it is the answer that is on its way
    StandInServer::Answer answer;
    Timestamp due;
  };
  std::vector<UnderWay> under_way;
  struct List {
    StandInServer::Objects objects;
    Timestamp due;
  };
  std::map<Kind, List> lists;        // that are on their way; the watch of that kind goes on behind them
  std::map<Kind, Timestamp> silent;  // kinds whose watch says nothing until then

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
  // The kind is listed anew, as after 410: the list is of now, and comes later.
  void list_again(Kind kind, Timestamp due) {
    std::erase_if(server.changes, [&](const StandInServer::Change& one) { return one.kind == kind; });
    lists[kind] = {server.objects[kind], due};
  }
  void take_lists() {
    for (auto one = lists.begin(); one != lists.end();) {
      if (faults != nullptr && one->second.due > server.now) {
        ++one;
        continue;
      }
      cluster.begin_list(one->first);
      for (const auto& [name, object] : one->second.objects) cluster.observe(one->first, object, false, server.now);
      cluster.end_list(one->first, server.now);
      one = lists.erase(one);
    }
  }
  // berth is killed and starts again: what it knew of the cluster is lost, its state is not.
  void restart() {
    for (const UnderWay& one : under_way) {
      if (!one.done) late.push_back(one.request);
    }
    under_way.clear();
    lists.clear();
    options.nodes.clear();
    for (const state::NodeState& node : state.nodes()) {
      if (node.removed || state.removals().contains(node.id)) continue;
      options.nodes.push_back({node.spec.name, node.spec.machine, node.status == NodeStatus::kLost});
    }
    cluster = Cluster(options);
    memory = {};
    state.jobs().for_each([&](const state::JobState& job) {
      if (!job.spec.source.cell.empty()) cluster.submitted(job.spec.source.key, job.id, server.now);
    });
    for (const Effect& effect : control::all_effects(state)) cluster.perform(effect, server.now);
    list();
  }

  bool is_silent(Kind kind) const {
    const auto found = silent.find(kind);
    return lists.contains(kind) || (faults != nullptr && found != silent.end() && found->second > server.now);
  }
  void watch() {
    take_lists();
    for (std::size_t i = 0; i < server.changes.size();) {
      if (is_silent(server.changes[i].kind)) {
        ++i;
        continue;
      }
      if (faults != nullptr && faults->chance(150)) return;  // the rest comes later
      const StandInServer::Change change = std::move(server.changes[i]);
      server.changes.erase(server.changes.begin() + static_cast<std::ptrdiff_t>(i));
      cluster.observe(change.kind, change.object, change.deleted, server.now);
      if (faults != nullptr && faults->chance(100))  // told twice
        cluster.observe(change.kind, change.object, change.deleted, server.now);
    }
  }
  // Hands over the answers that have been on their way long enough, in any order.
  void take_answers() {
    std::vector<UnderWay> rest = std::move(under_way);
    under_way.clear();
    while (!rest.empty()) {
      const std::size_t index = faults == nullptr ? 0 : faults->below(rest.size());
      UnderWay one = std::move(rest[index]);
      rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(index));
      if (faults != nullptr && one.due > server.now) {
        under_way.push_back(std::move(one));
        continue;
      }
      if (!one.done) one.answer = server.answer(one.request);
      cluster.answered(one.request.id, one.answer.status, one.answer.body, server.now);
    }
  }
  static std::string no_right_to(const Request& request) {
    const std::string verb = request.method == Method::kGet      ? "get"
                             : request.method == Method::kPost   ? "create"
                             : request.method == Method::kDelete ? "delete"
                                                                 : "patch";
    return R"({"message":"User \"berth\" cannot )" + verb + R"( resource \"pods\""})";
  }
  void send(const Request& request) {
    if (faults != nullptr && denies_until > server.now)
      return cluster.answered(request.id, 403, no_right_to(request), server.now);
    if (faults != nullptr && faults->chance(100)) {  // no answer, and it arrives later or never
      if (faults->chance(700)) late.push_back(request);
      return cluster.answered(request.id, 0, "", server.now);
    }
    if (faults != nullptr && faults->chance(60)) {  // it is refused for the moment
      constexpr int kRefusals[] = {403, 429, 500, 503, 504};
      const int status = kRefusals[faults->below(5)];
      return cluster.answered(request.id, status, status == 403 ? "not yet ready to handle request" : "", server.now);
    }
    if (faults != nullptr && faults->chance(150)) {  // it, or its answer, takes up to the 4 s that berth waits
      const bool done = faults->chance(500);
      const Timestamp due = server.now + 1000 * static_cast<std::int64_t>(1 + faults->below(4));
      under_way.push_back({request, done, done ? server.answer(request) : StandInServer::Answer{}, due});
      return;
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
        if (submit == nullptr || submit->key.empty()) continue;
        if (reply) cluster.submitted(submit->key, reply->job, server.now);
        if (!reply) cluster.refused(submit->key, reply.error().message, server.now);
      }
      for (const Effect& effect : control::effects_of(state, done.records)) cluster.perform(effect, server.now);
      for (const control::FinishedJob& job : done.finished_jobs) {
        outcomes[job.job.id] = job.how.outcome;
        cluster.finished(job.job.id, job.how.outcome == Outcome::kCancelled, server.now);
      }
      again = done.again;
      commands.clear();
    }
  }
  void step() {
    watch();
    take_answers();
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
