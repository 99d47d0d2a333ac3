// Starts that fail: the job is not to blame, loses no try, and starts again.

#include <doctest/doctest.h>

#include <set>
#include <string>

#include "support/kubernetes_world.h"

namespace berth::kube {
namespace {

struct Starts : KubernetesWorld {
  explicit Starts(int nodes) {
    server.add_namespace("team", "ads");
    for (int number = 1; number <= nodes; ++number)
      server.put(Kind::kNode, StandInServer::node("n" + std::to_string(number), 8));
    settle();
  }
  void gang(int size) {
    for (int number = 0; number < size; ++number)
      server.add_gang_pod("team", "g" + std::to_string(number), "g", size, 8);
  }
  // Lets the kubelets and the controllers work for a while.
  void work(std::int64_t seconds) {
    for (std::int64_t second = 0; second < seconds; ++second) {
      server.control_jobs(8);
      pass(1);
      server.run_kubelets();
    }
  }
  std::string node_of(const std::string& pod) {
    return server.has_pod(pod) ? StandInServer::node_of(server.pod(pod)) : "gone";
  }
  std::int64_t free_pods(const std::string& name) const {
    for (const state::NodeState& node : state.nodes()) {
      if (node.spec.name != name) continue;
      std::int64_t theirs = 0;
      for (const auto& [countable, amount] : node.foreign.countables) theirs += countable == "pods" ? amount : 0;
      return 110 - theirs;
    }
    return -1;
  }
  // The pods that are bound, by node.
  std::string places() {
    std::multiset<std::string> bound;
    for (const auto& [name, pod] : server.objects[Kind::kPod]) {
      if (!StandInServer::node_of(pod).empty()) bound.insert(name.substr(5, 1) + "@" + StandInServer::node_of(pod));
    }
    std::string all;
    for (const std::string& one : bound) all += one + " ";
    return all;
  }
};

}  // namespace

TEST_CASE("a pod whose binding is refused starts when it is not refused any more, and its job has lost no try") {
  Starts world(1);
  world.server.refused["team/a"] = StandInServer::status(422, "a webhook says no");
  world.server.put(Kind::kPod, StandInServer::pod_of("team", "a", 8));
  world.work(10);
  REQUIRE(world.job(1) != nullptr);
  CHECK_EQ(world.node_of("team/a"), "");
  CHECK_EQ(world.free_pods("n1"), 110);  // that says nothing of the node
  world.server.refused.clear();
  world.work(60);
  CHECK_EQ(world.node_of("team/a"), "n1");
  CHECK_EQ(world.job(1)->failures, 0);
}

TEST_CASE("a gang whose start a kubelet refuses unwinds, avoids that node for a minute, and starts elsewhere") {
  for (const char* reason : {"OutOfpods", "UnexpectedAdmissionError", "NodeShutdown"}) {
    CAPTURE(reason);
    Starts world(2);
    world.server.add_job("team", "j", 2);
    world.server.control_jobs(8);
    world.settle();
    REQUIRE_EQ(world.places(), "j@n1 j@n2 ");
    for (const auto& [name, pod] : StandInServer::Objects(world.server.objects[Kind::kPod])) {
      if (StandInServer::node_of(pod) == "n1") world.server.refuse_pod(name, reason);
    }
    world.server.put(Kind::kNode, StandInServer::node("n3", 8));
    world.settle();
    CHECK_EQ(world.free_pods("n1"), 0);
    world.work(30);
    REQUIRE(world.job(1) != nullptr);
    CHECK_EQ(world.job(1)->failures, 0);
    CHECK(world.job(1)->attempt.has_value());
    CHECK_EQ(world.job(1)->attempts, 2);
    world.work(40);
    CHECK_EQ(world.free_pods("n1"), 110);
    std::string where;
    for (const auto& task : world.job(1)->attempt->tasks) where += world.state.node(task.placement.node).spec.name;
    CHECK((where == "n2n3" || where == "n3n2"));
  }
}

TEST_CASE("a pod alone that a kubelet refuses is over, and so is its job") {
  Starts world(1);
  world.server.put(Kind::kPod, StandInServer::pod_of("team", "a", 8));
  world.settle();
  world.server.refuse_pod("team/a", "OutOfcpu");
  world.work(5);
  CHECK(world.job(1) == nullptr);
  REQUIRE(world.outcomes.contains(JobId(1)));
  CHECK_EQ(world.outcomes.at(JobId(1)), Outcome::kStartFailed);
}

TEST_CASE("a gang of which another scheduler has bound a pod unwinds; the pods that were bound say why they go") {
  Starts world(3);
  world.gang(3);
  world.watch();
  world.decide(world.cluster.take().commands);
  Output output = world.cluster.take();
  REQUIRE_EQ(output.requests.size(), 3);
  world.server.take_pod("team/g1", "n1");
  for (const Request& request : output.requests) world.send(request);
  world.work(3);
  CHECK_EQ(world.node_of("team/g0"), "gone");
  CHECK_EQ(world.node_of("team/g2"), "gone");
  CHECK_EQ(world.node_of("team/g1"), "n1");  // it is not berth's
  CHECK_NE(world.server.events_of("team/g0").find("pod team/g1 was bound to node n1 by another"), std::string::npos);
  CHECK_NE(world.server.events_of("team/g0").find("make it anew"), std::string::npos);
  CHECK_FALSE(world.outcomes.contains(JobId(1)));
}

TEST_CASE("a pod alone that another scheduler has bound is foreign, and its job is given up") {
  Starts world(1);
  world.server.put(Kind::kPod, StandInServer::pod_of("team", "a", 4));
  world.watch();
  world.decide(world.cluster.take().commands);
  Output output = world.cluster.take();
  REQUIRE_EQ(output.requests.size(), 1);
  world.server.take_pod("team/a", "n1");
  world.send(output.requests[0]);
  world.work(10);
  CHECK_EQ(world.node_of("team/a"), "n1");
  REQUIRE(world.outcomes.contains(JobId(1)));
  CHECK_EQ(world.outcomes.at(JobId(1)), Outcome::kCancelled);
}

TEST_CASE("a gang of pods without a controller that loses one while it waits is never bound short, and says so") {
  Starts world(3);
  world.gang(4);
  world.work(5);
  REQUIRE(world.job(1) != nullptr);
  CHECK_EQ(world.places(), "");
  SUBCASE("it is deleted while the gang waits") { world.server.remove(Kind::kPod, "team/g2"); }
  SUBCASE("and berth has not heard of it when there is room") {
    world.silent[Kind::kPod] = world.server.now + 5'000;
    world.server.remove(Kind::kPod, "team/g2");
  }
  world.server.put(Kind::kNode, StandInServer::node("n4", 8));
  world.work(30);
  CHECK_EQ(world.places(), "");
  std::int64_t charged = 0;
  world.state.jobs().for_each([&](const state::JobState& job) { charged += job.attempt.has_value() ? 1 : 0; });
  CHECK_EQ(charged, 0);
  CHECK_EQ(world.server.waits["team/g0"], "3 of the 4 pods of its group wait");
  world.server.add_gang_pod("team", "g2", "g", 4, 8);
  world.work(5);
  CHECK_EQ(world.places(), "g@n1 g@n2 g@n3 g@n4 ");
}

TEST_CASE("a gang whose controller has not made all pods is bound when the last one is there, and fails no try else") {
  Starts world(2);
  world.server.add_job("team", "j", 2);
  world.server.control_jobs(8);
  world.watch();
  world.decide(world.cluster.take().commands);
  world.cluster.take();  // the bindings are lost with the server
  const std::string first = world.server.objects[Kind::kPod].begin()->first;
  world.server.remove(Kind::kPod, first);
  world.restart();
  world.pass(60);
  CHECK_EQ(world.places(), "");
  SUBCASE("it comes") {
    world.work(5);
    CHECK_EQ(world.places(), "j@n1 j@n2 ");
    CHECK_EQ(world.job(1)->attempts, 1);
  }
  SUBCASE("it comes late") {
    world.pass(100);
    CHECK_EQ(world.places(), "");
    REQUIRE(world.job(1) != nullptr);
    CHECK_GT(world.job(1)->attempts, 1);
    CHECK_EQ(world.job(1)->failures, 0);
    world.work(5);
    CHECK_EQ(world.places(), "j@n1 j@n2 ");
  }
}

}  // namespace berth::kube
