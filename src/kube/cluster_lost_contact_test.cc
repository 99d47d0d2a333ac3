// Gangs with pods on a node out of contact, whose controller has made new pods.

#include <doctest/doctest.h>

#include <set>
#include <string>

#include "support/kubernetes_world.h"

namespace berth::kube {
namespace {

struct LostContact : KubernetesWorld {
  explicit LostContact(int nodes) {
    server.add_namespace("team", "ads");
    server.replaces_leaving = true;
    for (int number = 1; number <= nodes; ++number) server.put(Kind::kNode, StandInServer::node(name(number), 8));
    settle();
  }
  static std::string name(int number) { return "n" + std::to_string(number); }
  void run_job(int size) {
    server.add_job("team", "j", size);
    work(3);
  }
  void lose(int number) {
    server.set_ready(name(number), false);
    settle();
  }
  // The Node object is deleted, and its pods with it.
  void prove_dead(int number) {
    server.remove(Kind::kNode, "/" + name(number));
    for (const auto& [key, pod] : StandInServer::Objects(server.objects[Kind::kPod])) {
      if (StandInServer::node_of(pod) == name(number)) server.remove(Kind::kPod, key);
    }
  }
  void work(std::int64_t seconds) {
    for (std::int64_t second = 0; second < seconds; ++second) {
      server.control_jobs(8);
      pass(1);
      server.run_kubelets();
    }
  }
  // The nodes of the pods that are not being deleted; "-" for one that waits.
  std::string places() {
    std::multiset<std::string> all;
    for (const auto& [key, pod] : server.objects[Kind::kPod]) {
      const std::string node = StandInServer::node_of(pod);
      if (!pod.at("metadata").as_object().contains("deletionTimestamp")) all.insert(node.empty() ? "-" : node);
    }
    std::string text;
    for (const std::string& one : all) text += one + " ";
    return text;
  }
  std::string why_one_waits() {
    for (const auto& [key, pod] : server.objects[Kind::kPod]) {
      if (StandInServer::node_of(pod).empty()) return server.waits[key];
    }
    return {};
  }
  std::int64_t charged_gpus() const {
    std::int64_t gpus = 0;
    state.jobs().for_each([&](const state::JobState& job) {
      for (std::size_t i = 0; job.attempt && i < job.attempt->tasks.size(); ++i)
        gpus += job.attempt->tasks[i].phase == TaskPhase::kExited ? 0 : 8;
    });
    return gpus;
  }
};

}  // namespace

TEST_CASE("new pods for a gang on nodes out of contact start elsewhere; the old ones are charged until they are gone") {
  LostContact world(4);
  world.run_job(2);
  REQUIRE_EQ(world.places(), "n1 n2 ");
  world.lose(1);
  world.lose(2);
  world.work(5);
  CHECK_EQ(world.places(), "n3 n4 ");
  CHECK_EQ(world.charged_gpus(), 32);
  SUBCASE("also after a restart") {
    world.restart();
    world.work(40);
    CHECK_EQ(world.places(), "n3 n4 ");
    CHECK_EQ(world.charged_gpus(), 32);
  }
  world.prove_dead(1);
  world.prove_dead(2);
  world.work(130);
  CHECK_EQ(world.charged_gpus(), 16);
  CHECK_EQ(world.places(), "n3 n4 ");
  CHECK_EQ(world.server.objects[Kind::kPod].size(), 2);
  REQUIRE(world.job(1) == nullptr);
  CHECK_EQ(world.outcomes.at(JobId(1)), Outcome::kCancelled);
  REQUIRE(world.job(2) != nullptr);
  CHECK_EQ(world.job(2)->failures, 0);
  for (const auto& [key, pod] : StandInServer::Objects(world.server.objects[Kind::kPod])) world.server.end(key, 0);
  world.pass(5);
  CHECK_EQ(world.outcomes.at(JobId(2)), Outcome::kSucceeded);
}

TEST_CASE(
    "a gang with one pod on a node out of contact starts anew whole when its controller has made that pod again") {
  LostContact world(4);
  world.run_job(2);
  REQUIRE_EQ(world.places(), "n1 n2 ");
  world.lose(1);
  world.work(40);
  CHECK_EQ(world.places(), "n3 n4 ");  // the old job keeps all its places until it is over
  CHECK_EQ(world.charged_gpus(), 24);
}

TEST_CASE("a pod whose container does not start is charged until its kubelet has its devices back") {
  LostContact world(1);
  world.server.put(Kind::kPod, StandInServer::pod_of("team", "p", 8));
  world.pass(3);
  boost::json::object pod = world.server.pod("team/p");
  REQUIRE_EQ(StandInServer::node_of(pod), "n1");
  pod["status"].as_object()["containerStatuses"] =
      boost::json::parse(R"([{"state":{"waiting":{"reason":"ImagePullBackOff"}}}])");
  world.server.put(Kind::kPod, pod);
  world.pass(700);
  CHECK(world.server.pod("team/p").at("metadata").as_object().contains("deletionTimestamp"));
  CHECK_EQ(world.charged_gpus(), 8);
  CHECK(world.outcomes.empty());
  world.server.run_kubelets();
  world.pass(5);
  CHECK_EQ(world.charged_gpus(), 0);
  CHECK_EQ(world.outcomes.at(JobId(1)), Outcome::kStartFailed);
}

TEST_CASE("a PodGroup whose controller makes new pods is replaced as a whole, and not torn into single jobs") {
  LostContact world(7);
  boost::json::object group{{"metadata", {{"namespace", "team"}, {"name", "pg"}}}, {"spec", {{"minMember", 3}}}};
  world.server.put(Kind::kVolcanoPodGroup, group);
  const auto add_pod = [&](const std::string& name) {
    boost::json::object pod = StandInServer::pod_of("team", name, 8);
    auto& metadata = pod["metadata"].as_object();
    metadata["annotations"] = {{"scheduling.k8s.io/group-name", "pg"}};
    metadata["ownerReferences"] = boost::json::array{boost::json::object{
        {"apiVersion", "example.com/v1"}, {"kind", "Trainer"}, {"name", "t"}, {"uid", "t"}, {"controller", true}}};
    world.server.put(Kind::kPod, std::move(pod));
  };
  for (const char* name : {"p0", "p1", "p2"}) add_pod(name);
  world.work(5);
  REQUIRE_EQ(world.places(), "n1 n2 n3 ");
  world.lose(1);
  boost::json::object leaves = world.server.pod("team/p0");
  leaves["metadata"].as_object()["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  world.server.put(Kind::kPod, std::move(leaves));
  add_pod("p3");
  world.work(5);
  CHECK_EQ(world.places(), "- ");  // the others are deleted with their job, and the new one is no gang of three
  for (const char* name : {"p4", "p5"}) add_pod(name);
  world.work(10);
  CHECK_EQ(world.places(), "n4 n5 n6 ");
  int live = 0;
  world.state.jobs().for_each([&](const state::JobState& job) { live += job.attempt && job.id != JobId(1) ? 1 : 0; });
  CHECK_EQ(live, 1);
}

TEST_CASE("a gang whose node comes back before new pods are made goes on") {
  LostContact world(3);
  world.server.replaces_leaving = false;
  world.run_job(2);
  boost::json::object node = world.server.objects[Kind::kNode].at("/n1");
  const boost::json::object before = node;
  node["status"].as_object()["conditions"].as_array()[0].as_object()["status"] = "Unknown";
  world.server.put(Kind::kNode, std::move(node));
  world.work(60);
  world.server.put(Kind::kNode, before);
  world.work(5);
  CHECK_EQ(world.places(), "n1 n2 ");
  CHECK(world.outcomes.empty());
  CHECK_EQ(world.job(1)->attempts, 1);
}

TEST_CASE("where the namespace says so, new pods wait until the old ones are proven dead, and say for what") {
  LostContact world(4);
  boost::json::object space = world.server.objects[Kind::kNamespace].at("/team");
  space["metadata"].as_object()["annotations"].as_object()["berth.dev/on-lost-contact"] = "wait";
  world.server.put(Kind::kNamespace, std::move(space));
  world.run_job(2);
  world.lose(1);
  world.lose(2);
  world.work(30);
  CHECK_EQ(world.places(), "- - ");
  CHECK_EQ(world.charged_gpus(), 16);
  CHECK_NE(world.why_one_waits().find("job 1 of its group has a pod on node n1, which is out of contact"),
           std::string::npos);
  world.prove_dead(1);
  world.prove_dead(2);
  world.work(130);
  CHECK_EQ(world.places(), "n3 n4 ");
  CHECK_EQ(world.charged_gpus(), 16);
}

TEST_CASE(
    "a node that is deleted or replaced before it is back is lost, also where berth has started again meanwhile") {
  LostContact world(3);
  world.server.replaces_leaving = false;
  world.run_job(2);
  world.lose(1);
  world.restart();
  world.pass(5);
  CHECK_EQ(world.charged_gpus(), 16);
  world.prove_dead(1);
  SUBCASE("it is gone") {}
  SUBCASE("there is another of its name") { world.server.put(Kind::kNode, StandInServer::node("n1", 8)); }
  world.work(5);
  for (const std::string& error : world.errors) FAIL_CHECK(error);
  for (const state::NodeState& node : world.state.nodes()) {
    if (node.spec.name == "n1") CHECK(node.status != NodeStatus::kUnknown);
  }
  world.work(130);
  CHECK_EQ(world.charged_gpus(), 16);
  CHECK_EQ(world.server.objects[Kind::kPod].size(), 2);
}

TEST_CASE("a node out of contact that gets taints meanwhile is lost to contact once, and takes pods when it is back") {
  LostContact world(1);
  world.lose(1);
  const boost::json::object silent = world.server.objects[Kind::kNode].at("/n1");
  for (const char* key : {"a", "b", "c", "d"}) {
    boost::json::object node = silent;
    const boost::json::object taint{{"key", key}, {"effect", "NoExecute"}};
    node["spec"].as_object()["taints"] = boost::json::array{taint};
    world.server.put(Kind::kNode, std::move(node));
    world.work(1);
    CHECK(world.state.nodes().front().status == NodeStatus::kUnknown);
  }
  world.server.put(Kind::kNode, silent);
  world.server.set_ready("n1", true);
  world.work(1);
  CHECK(world.state.nodes().front().takes_tasks());
  world.run_job(1);
  CHECK_EQ(world.places(), "n1 ");
}

}  // namespace berth::kube
