// Any order of events, with lost answers, late requests, repeated watches and restarts: no pod is bound twice, no task
// has two pods that live, and no pod runs whose job does not know it.

#include <doctest/doctest.h>

#include <set>
#include <string>

#include "kube/pod_object.h"
#include "support/kubernetes_world.h"
#include "support/random_rounds.h"

namespace berth::kube {
namespace {

struct Storm : KubernetesWorld {
  Random random;
  int names = 0;
  int late_bindings = 0;  // that were done after berth was told nothing
  int volumes = 0;        // that were made

  explicit Storm(std::uint64_t seed) : random(seed) {
    server.add_namespace("team", "research/nlp, ads");
    for (int i = 0; i < 3; ++i) server.put(Kind::kNode, StandInServer::node("n" + std::to_string(i), 8));
    server.add_storage_class("fast");
    settle();
    faults = &random;
  }
  std::string any_pod() {
    const auto& all = server.objects[Kind::kPod];
    if (all.empty()) return {};
    return std::next(all.begin(), static_cast<std::int64_t>(random.below(all.size())))->first;
  }
  void add() {
    const int number = ++names;
    const int gpus = 1 << random.below(3);
    switch (random.below(3)) {
      case 0:
        return server.put(Kind::kPod, StandInServer::pod_of("team", "p" + std::to_string(number), gpus));
      case 1: {
        const int size = 2 + static_cast<int>(random.below(3));
        const bool claims = random.chance(400);
        for (int i = 0; i < size; ++i) {
          const std::string one = "g" + std::to_string(number) + "-" + std::to_string(i);
          if (claims) server.add_claim("team", one, "fast");
          server.add_gang_pod("team", one, "gang" + std::to_string(number), size, gpus, claims ? one : "");
        }
        return;
      }
      default:
        return server.add_job("team", "job" + std::to_string(number), 2 + static_cast<int>(random.below(3)));
    }
  }
  void trouble() {
    const std::string name = any_pod();
    switch (random.below(11)) {
      case 0:
      case 1:
        return add();
      case 2:
        return server.control_jobs(2);
      case 3:
      case 4:
        if (!name.empty()) server.run_kubelet(name);
        return;
      case 5:
        if (!name.empty() && !StandInServer::node_of(server.pod(name)).empty())
          server.end(name, random.chance(800) ? 0 : 1);
        return;
      case 6:
        if (!name.empty() && random.chance(300)) server.remove(Kind::kPod, name);
        return;
      case 7:
        if (random.chance(100)) restart();
        return;
      case 8:
      case 9:
        return provision_one();
      default:
        if (random.chance(300)) decide({CancelJob{JobId(1 + random.below(20)), "ann"}});
        if (!late.empty() && random.chance(900)) {
          const std::size_t one = random.below(late.size());
          if (server.answer(late[one]).status == 201 && late[one].path.ends_with("/binding")) ++late_bindings;
          late.erase(late.begin() + static_cast<std::ptrdiff_t>(one));
        }
    }
  }
  void provision_one() {
    const auto& all = server.objects[Kind::kPersistentVolumeClaim];
    if (all.empty()) return;
    const std::string name = std::next(all.begin(), static_cast<std::int64_t>(random.below(all.size())))->first;
    if (server.provision(name)) ++volumes;
  }
  // The node that the volume of the pod's claim is on; empty: the pod has no claim.
  std::string node_of_volume(const boost::json::object& pod) {
    if (!pod.at("spec").as_object().contains("volumes")) return {};
    const std::string claim(pod.at("spec").at("volumes").at(0).at("persistentVolumeClaim").at("claimName").as_string());
    const auto& object = server.objects[Kind::kPersistentVolumeClaim].at("team/" + claim);
    if (object.at("status").at("phase").as_string() != "Bound") return "none";
    const auto& volume =
        server.objects[Kind::kPersistentVolume].at("/" + std::string(object.at("spec").at("volumeName").as_string()));
    const auto& terms = volume.at("spec").at("nodeAffinity").at("required").at("nodeSelectorTerms");
    return std::string(terms.at(0).at("matchFields").at(0).at("values").at(0).as_string());
  }
  // Bound, not over and not being deleted.
  static bool lives(const boost::json::object& pod) {
    const auto phase = pod.at("status").at("phase").as_string();
    return !StandInServer::node_of(pod).empty() && !pod.at("metadata").as_object().contains("deletionTimestamp") &&
           phase != "Succeeded" && phase != "Failed";
  }
  static std::string task_of(const boost::json::object& pod) {
    return std::string(pod.at("metadata").at("annotations").at("berth.dev/task").as_string());
  }
  // What must hold of the server at any time.
  void check_always() {
    for (const auto& [uid, times] : server.bindings) REQUIRE(times == 1);
    std::set<std::string> seen;
    for (const auto& [name, pod] : server.objects[Kind::kPod]) {
      if (lives(pod)) REQUIRE(seen.insert(task_of(pod)).second);
      const std::string where = StandInServer::node_of(pod).empty() ? std::string() : node_of_volume(pod);
      if (!where.empty()) REQUIRE_EQ(where, StandInServer::node_of(pod));
    }
  }
  // What must hold when all is quiet: each bound pod is a task that lives, on its node.
  void check_quiet() {
    for (const auto& [name, pod] : server.objects[Kind::kPod]) {
      if (!lives(pod)) continue;
      const std::string task = task_of(pod);
      CAPTURE(name);
      CAPTURE(task);
      const auto key = task_of_text(task);
      REQUIRE(key);
      const state::JobState* job = state.job(key->job);
      REQUIRE(job != nullptr);
      REQUIRE(job->attempt.has_value());
      CHECK(job->attempt->number == key->attempt);
      CHECK(job->attempt->tasks[key->task].phase != TaskPhase::kExited);
      CHECK(state.node(job->attempt->tasks[key->task].placement.node).spec.name == StandInServer::node_of(pod));
    }
  }
};

TEST_CASE("in any order of events, with lost answers and restarts, no pod is bound twice and no task has two pods") {
  int late_bindings = 0;
  int volumes = 0;
  const auto seeds = static_cast<std::uint64_t>(random_rounds(60, 3'000));
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    CAPTURE(seed);
    Storm storm(seed);
    for (int i = 0; i < 600; ++i) {
      storm.trouble();
      if (storm.random.chance(300)) storm.pass(1);
      storm.step();
      storm.check_always();
    }
    storm.faults = nullptr;
    for (const Request& request : storm.late) storm.server.answer(request);
    for (int i = 0; i < 100; ++i) {
      storm.pass(2);
      storm.server.run_kubelets();
      storm.check_always();
    }
    storm.settle();
    storm.check_quiet();
    late_bindings += storm.late_bindings;
    volumes += storm.volumes;
    for (const std::string& error : storm.errors) {
      CAPTURE(error);
      CHECK((error.find("no such job") != std::string::npos || error.find("has finished") != std::string::npos));
    }
  }
  const int few = static_cast<int>(seeds);
  CHECK(late_bindings > few / 4);  // else the test would show little
  CHECK(volumes > few);
}

}  // namespace
}  // namespace berth::kube
