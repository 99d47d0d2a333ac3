// Groups of pods that are larger than their least size: a gang of that size, and each pod beyond it a job of its own.

#include <doctest/doctest.h>

#include <set>
#include <string>

#include "support/kubernetes_world.h"

namespace berth::kube {
namespace {

struct Growth : KubernetesWorld {
  Kind kind;
  int pods = 0;
  boost::json::object labels = {};

  explicit Growth(Kind of, int least) : kind(of) {
    server.add_namespace("team", "ads");
    boost::json::object group{{"metadata", {{"namespace", "team"}, {"name", "pg"}}}};
    if (kind == Kind::kPodGroup)
      group["spec"] = {{"schedulingPolicy", {{"gang", {{"minCount", least}}}}}};
    else
      group["spec"] = {{"minMember", least}};
    server.put(kind, group);
    settle();
  }
  void add_nodes(int count) {
    for (int i = 0; i < count; ++i) {
      const auto number = server.objects[Kind::kNode].size() + 1;
      server.put(Kind::kNode, StandInServer::node("n" + std::to_string(number), 8));
    }
    settle();
  }
  void add_pods(int count) {
    for (int i = 0; i < count; ++i) {
      boost::json::object pod = StandInServer::pod_of("team", "p" + std::to_string(pods++), 8);
      auto& metadata = pod["metadata"].as_object();
      if (kind == Kind::kPodGroup) pod["spec"].as_object()["schedulingGroup"] = {{"podGroupName", "pg"}};
      if (kind == Kind::kVolcanoPodGroup) metadata["annotations"] = {{"scheduling.k8s.io/group-name", "pg"}};
      if (kind == Kind::kKaiPodGroup) metadata["annotations"] = {{"pod-group-name", "pg"}};
      if (kind == Kind::kCoschedulingPodGroup) metadata["labels"].as_object()["scheduling.x-k8s.io/pod-group"] = "pg";
      for (const auto& [key, value] : labels) metadata["labels"].as_object()[key] = value;
      server.put(Kind::kPod, std::move(pod));
    }
    work(5);
  }
  void work(std::int64_t seconds) {
    for (std::int64_t second = 0; second < seconds; ++second) {
      pass(1);
      server.run_kubelets();
    }
  }
  std::size_t bound() {
    std::size_t count = 0;
    for (const auto& [name, pod] : server.objects[Kind::kPod]) count += StandInServer::node_of(pod).empty() ? 0U : 1U;
    return count;
  }
};

constexpr Kind kKinds[] = {Kind::kPodGroup, Kind::kVolcanoPodGroup, Kind::kKaiPodGroup, Kind::kCoschedulingPodGroup};

}  // namespace

TEST_CASE("a PodGroup with more pods than its least size runs as many as there is room for, and no fewer than that") {
  for (const Kind kind : kKinds) {
    CAPTURE(static_cast<int>(kind));
    Growth world(kind, 4);
    world.add_nodes(3);
    world.add_pods(10);
    CHECK_EQ(world.bound(), 0);  // three of a gang of four are none, and pods beyond it do not go ahead of it
    world.add_nodes(5);
    world.work(5);
    CHECK_EQ(world.bound(), 8);
    world.add_nodes(2);
    world.work(5);
    CHECK_EQ(world.bound(), 10);
    for (const auto& [job, outcome] : world.outcomes) CHECK_EQ(outcome, Outcome::kSucceeded);
  }
}

TEST_CASE("pods that are added to a PodGroup that runs start as room comes, also after a restart") {
  for (const Kind kind : kKinds) {
    CAPTURE(static_cast<int>(kind));
    Growth world(kind, 4);
    world.add_nodes(5);
    world.add_pods(4);
    CHECK_EQ(world.bound(), 4);
    world.add_pods(2);
    CHECK_EQ(world.bound(), 5);
    world.restart();
    world.work(40);
    CHECK_EQ(world.bound(), 5);
    world.add_nodes(1);
    world.work(5);
    CHECK_EQ(world.bound(), 6);
    CHECK_EQ(world.server.objects[Kind::kPod].size(), 6);
    CHECK(world.outcomes.empty());
  }
}

TEST_CASE("pods that run or have succeeded count for the least size of what is added") {
  Growth world(Kind::kVolcanoPodGroup, 2);
  world.add_nodes(3);
  world.add_pods(3);
  CHECK_EQ(world.bound(), 3);
  for (const char* pod : {"team/p0", "team/p1"}) world.server.end(pod, 0);
  world.work(5);
  world.add_pods(1);
  CHECK_EQ(world.bound(), 4);
}

TEST_CASE("pods of a JobSet that name a PodGroup are a gang of that, whatever roles they have in the JobSet") {
  Growth world(Kind::kPodGroup, 4);
  world.labels = {{"jobset.sigs.k8s.io/jobset-name", "js"},
                  {"jobset.sigs.k8s.io/replicatedjob-name", "workers"},
                  {"jobset.sigs.k8s.io/job-index", "0"}};
  world.add_nodes(5);
  world.add_pods(5);
  world.work(5);
  CHECK_EQ(world.bound(), 5);
}

TEST_CASE("a gang that waits is given up where a pod of it is deleted, though a pod beyond it runs") {
  Growth world(Kind::kVolcanoPodGroup, 2);
  world.add_nodes(2);
  world.add_pods(3);
  REQUIRE_EQ(world.bound(), 2);  // the third is a job of its own, and waits
  for (const char* node : {"/n1", "/n2"}) world.server.remove(Kind::kNode, node);
  for (const char* pod : {"team/p0", "team/p1"}) world.server.remove(Kind::kPod, pod);
  world.work(5);
  world.add_pods(2);  // the gang anew
  world.add_nodes(1);
  world.work(5);
  REQUIRE_FALSE(StandInServer::node_of(world.server.pod("team/p2")).empty());
  world.server.remove(Kind::kPod, "team/p3");
  world.work(60);
  world.add_nodes(1);
  world.work(5);
  CHECK_FALSE(StandInServer::node_of(world.server.pod("team/p4")).empty());  // with p2 it is as many as the least size
}

TEST_CASE("a pod that is being deleted does not count for the least size of a gang") {
  Growth world(Kind::kVolcanoPodGroup, 2);
  world.add_nodes(3);
  world.add_pods(3);
  REQUIRE_EQ(world.bound(), 3);
  for (const char* pod : {"team/p0", "team/p1"}) world.server.end(pod, 1);
  world.work(5);
  boost::json::object leaves = world.server.pod("team/p2");
  leaves["metadata"].as_object()["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  world.server.put(Kind::kPod, std::move(leaves));
  world.add_pods(1);
  CHECK(StandInServer::node_of(world.server.pod("team/p3")).empty());
  world.add_pods(1);
  CHECK_FALSE(StandInServer::node_of(world.server.pod("team/p4")).empty());
}

TEST_CASE("a pod beyond the least size that waits stays a job of its own when the gang is over") {
  Growth world(Kind::kVolcanoPodGroup, 2);
  world.add_nodes(2);
  world.add_pods(3);
  CHECK_EQ(world.bound(), 2);
  world.server.end("team/p0", 1);
  world.work(60);
  CHECK_EQ(world.outcomes.size(), 1);
  CHECK_EQ(StandInServer::node_of(world.server.pod("team/p2")).empty(), false);
}

TEST_CASE("a PodGroup of at least one pod is no gang: each of its pods starts where there is room for it") {
  Growth world(Kind::kKaiPodGroup, 1);
  world.add_nodes(2);
  world.add_pods(3);
  CHECK_EQ(world.bound(), 2);
}

}  // namespace berth::kube
