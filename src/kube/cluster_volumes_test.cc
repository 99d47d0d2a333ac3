#include <doctest/doctest.h>

#include <algorithm>

#include "kube/api_stand_in.h"
#include "kube/cluster.h"
#include "model/exit_code.h"
#include "support/kubernetes_world.h"

namespace berth::kube {
namespace {

constexpr Kind kClaim = Kind::kPersistentVolumeClaim;
constexpr Kind kVolume = Kind::kPersistentVolume;
constexpr Kind kClass = Kind::kStorageClass;
constexpr const char* kGangOfTwo = R"("berth.dev/group":"g","berth.dev/group-size":"2")";
constexpr const char* kOpen = R"("spec":{"storageClassName":"fast"},"status":{"phase":"Pending"})";

std::string uses(const std::string& claim) {
  return R"("volumes":[{"name":"v","persistentVolumeClaim":{"claimName":")" + claim + R"("}}])";
}
std::string bound_to(const std::string& volume) {
  return R"("spec":{"volumeName":")" + volume + R"("},"status":{"phase":"Bound"})";
}
std::string on(const std::string& key, const std::string& values) {
  return R"("spec":{"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":")" + key +
         R"(","operator":"In","values":[)" + values + "]}]}]}}}";
}
TaskKey task_of(std::uint64_t job, std::uint32_t number = 0, std::uint32_t attempt = 1) {
  return {JobId(job), attempt, number, 1};
}

struct Volumes : ApiStandIn {
  explicit Volumes(Options options = {}) : ApiStandIn(std::move(options)) {
    for (const char* name : {"n1", "n2", "n3"}) {
      node(name, 8);
      nodes_[name]["metadata"].as_object()["labels"].as_object()["host"] = name;
      cluster().observe(Kind::kNode, nodes_[name], false, now());
    }
    name_space("team", "research/nlp");
    storage(kClass, "fast", R"("provisioner":"csi.example.com","volumeBindingMode":"WaitForFirstConsumer")");
    storage(kClass, "now", R"("provisioner":"csi.example.com")");
    list();
  }
  // What a provisioner and the controller of volumes do.
  void provision(const std::string& claim, const std::string& where) {
    storage(kVolume, "pv-" + claim, where);
    storage(kClaim, claim, bound_to("pv-" + claim));
    settle();
  }
  // What the group asks of its nodes, in words; its rules are parted by "; ".
  std::string rules(std::size_t job, std::size_t group = 0) const {
    std::string text;
    for (const NodeRule& rule : jobs().at(job).spec.groups.at(group).node_rules)
      text += (text.empty() ? "" : "; ") + text_of(rule);
    return text;
  }
  // Makes a gang of two pods, a and b. Each has a claim of its own, c0 and c1, which is not bound yet.
  void make_gang_with_claims() {
    storage(kClaim, "c0", kOpen);
    storage(kClaim, "c1", kOpen);
    pod("a", 1, kGangOfTwo, uses("c0"));
    pod("b", 1, kGangOfTwo, uses("c1"));
    settle();
  }
  // Starts both tasks of the gang as the core does: in one go.
  void start_both(std::uint64_t job, const std::string& first, const std::string& second, std::uint32_t attempt = 1) {
    std::uint32_t number = 0;
    for (const std::string& node : {first, second}) {
      StartTask one;
      one.key = task_of(job, number++, attempt);
      one.node = node;
      one.grace_ms = 30'000;
      one.gpu_uuids.push_back("node-" + node + ":" + std::to_string(number));
      cluster().perform(one, now());
    }
    settle();
  }
  std::size_t cancelled(std::uint64_t job) const {
    return static_cast<std::size_t>(std::count_if(commands.begin(), commands.end(), [&](const Command& command) {
      const auto* one = std::get_if<CancelJob>(&command);
      return one != nullptr && one->job == JobId(job);
    }));
  }
};

}  // namespace

TEST_CASE("a bound claim sends its pod to the nodes of its volume") {
  Volumes api;
  api.storage(kVolume, "local", on("host", R"("n2")"));
  api.storage(kClaim, "data", bound_to("local"));
  api.pod("a", 1, "", uses("data"));
  api.settle();
  REQUIRE_EQ(api.jobs().size(), 1);
  CHECK_EQ(api.rules(0), "host in (n2)");
  api.start(task_of(1), "n2", 1);
  CHECK_EQ(api.node_of("a"), "n2");
}

TEST_CASE("the rule of a volume goes to the core as it is") {
  Volumes api;
  const auto before = api.registered;
  api.storage(kVolume, "shared", on("host", R"("n1","n3")"));
  api.storage(kClaim, "data", bound_to("shared"));
  api.pod("a", 1, "", uses("data"));
  api.settle();
  REQUIRE_EQ(api.jobs().size(), 1);
  CHECK_EQ(api.rules(0), "host in (n1, n3)");
  CHECK(api.registered == before);
}

TEST_CASE("a pod whose claim is missing, not bound or used by another waits with the reason, and starts when it can") {
  Volumes api;
  api.pod("a", 1, "", uses("data"));
  api.settle();
  api.pass(11);
  CHECK(api.told("a").find("claim data does not exist") != std::string::npos);
  api.storage(kClaim, "data", R"("spec":{"storageClassName":"now"},"status":{"phase":"Pending"})");
  api.settle();
  api.pass(61);
  CHECK(api.told("a").find("claim data is not bound yet") != std::string::npos);
  CHECK(api.jobs().empty());
  api.provision("data", R"("spec":{})");
  REQUIRE_EQ(api.jobs().size(), 1);
  CHECK_EQ(api.rules(0), "");
}

TEST_CASE("a ReadWriteOncePod claim is for one pod at a time") {
  Volumes api;
  api.storage(kVolume, "v", R"("spec":{})");
  api.storage(kClaim, "data",
              R"("spec":{"volumeName":"v","accessModes":["ReadWriteOncePod"]},"status":{"phase":"Bound"})");
  api.pod("a", 1, "", uses("data"));
  api.settle();
  api.start(task_of(1), "n1", 1);
  REQUIRE_EQ(api.node_of("a"), "n1");
  api.pod("b", 1, "", uses("data"));
  api.settle();
  api.pass(11);
  CHECK_EQ(api.jobs().size(), 1);
  CHECK(api.told("b").find("claim data is ReadWriteOncePod, and pod a uses it") != std::string::npos);
  api.phase(api.uid_of("a"), "Succeeded");
  api.settle();
  CHECK_EQ(api.jobs().size(), 2);
}

TEST_CASE("two pods of a gang cannot share a ReadWriteOncePod claim, and are told so") {
  Volumes api;
  api.storage(kVolume, "v", R"("spec":{})");
  api.storage(kClaim, "data",
              R"("spec":{"volumeName":"v","accessModes":["ReadWriteOncePod"]},"status":{"phase":"Bound"})");
  api.pod("a", 1, kGangOfTwo, uses("data"));
  api.pod("b", 1, kGangOfTwo, uses("data"));
  api.settle();
  api.pass(11);
  CHECK(api.jobs().empty());
  CHECK(api.told("a").find("pods a and b of one gang name it") != std::string::npos);
}

TEST_CASE("no pod of a gang is bound before the claims of all are") {
  Volumes api;
  api.make_gang_with_claims();
  REQUIRE_EQ(api.jobs().size(), 1);
  api.start_both(1, "n1", "n2");
  CHECK_EQ(api.selected_node("c0"), "n1");
  CHECK_EQ(api.selected_node("c1"), "n2");
  api.provision("c0", on("host", R"("n1")"));
  CHECK(api.node_of("a").empty());
  api.pass(12);
  CHECK(api.told("b").find("it has a place on node n2: claim c1 is not bound yet") != std::string::npos);
  api.provision("c1", on("host", R"("n2")"));
  CHECK_EQ(api.node_of("a"), "n1");
  CHECK_EQ(api.node_of("b"), "n2");
  CHECK_EQ(api.cancelled(1), 0);
}

TEST_CASE("a pod without claims waits with those of its gang that have some") {
  Volumes api;
  api.storage(kClaim, "c1", kOpen);
  api.pod("a", 1, kGangOfTwo);
  api.pod("b", 1, kGangOfTwo, uses("c1"));
  api.settle();
  api.start_both(1, "n1", "n2");
  CHECK(api.node_of("a").empty());
  CHECK(api.node_of("b").empty());
  const std::string where = api.selected_node("c1");
  api.provision("c1", on("host", '"' + where + '"'));
  CHECK_EQ(api.node_of("b"), where);
  CHECK_FALSE(api.node_of("a").empty());
}

TEST_CASE("a claim that is not bound in time ends the start of the whole gang, and no pod was bound") {
  Options options;
  options.volume_wait_s = 20;
  Volumes api(options);
  api.make_gang_with_claims();
  api.start_both(1, "n1", "n2");
  api.provision("c0", R"("spec":{})");
  api.pass(21);
  const TaskExited* exit = api.exit_of(task_of(1, 1));
  REQUIRE(exit != nullptr);
  CHECK(exit->reason == ExitReason::kStartFailed);
  CHECK_EQ(exit->code, kNotStartedCode);
  CHECK(exit->message.find("claim c1 is not bound yet; it waits for a volume for node n2 (given up after 20 s)") !=
        std::string::npos);
  CHECK(api.told("b").find("given up after 20 s") != std::string::npos);
  api.perform(KillTask{task_of(1, 0), "n1", 0});  // as the core does
  REQUIRE(api.exit_of(task_of(1, 0)) != nullptr);
  CHECK(api.node_of("a").empty());
  CHECK(api.deleted.empty());
  // The next attempt goes to other nodes: the claim that is not bound yet is told so.
  for (const std::uint32_t number : {0U, 1U}) api.perform(ForgetTask{task_of(1, number), "n1"});
  api.start_both(1, "n3", "n3", 2);
  CHECK_EQ(api.selected_node("c1"), "n3");
  api.provision("c1", R"("spec":{})");
  CHECK_EQ(api.node_of("a"), "n3");
  CHECK_EQ(api.node_of("b"), "n3");
}

TEST_CASE("a provisioner that takes the node out of the claim ends the start at once") {
  Volumes api;
  api.storage(kClaim, "c", kOpen);
  api.pod("a", 1, "", uses("c"));
  api.settle();
  api.start(task_of(1), "n1", 1);
  REQUIRE_EQ(api.selected_node("c"), "n1");
  api.storage(kClaim, "c", kOpen);  // without the annotation
  api.settle();
  REQUIRE(api.exit_of(task_of(1)) != nullptr);
  CHECK(api.exit_of(task_of(1))->message.find("its provisioner has made no volume for node n1") != std::string::npos);
}

TEST_CASE("a berth that is killed while claims are not bound goes on where it was") {
  Volumes api;
  api.make_gang_with_claims();
  api.start(task_of(1, 0), "n1", 1);
  api.start(task_of(1, 1), "n2", 1);
  api.restart();
  CHECK(api.node_of("a").empty());
  api.provision("c0", on("host", R"("n1")"));
  api.restart();
  CHECK(api.node_of("a").empty());
  CHECK_EQ(api.selected_node("c1"), "n2");
  api.provision("c1", on("host", R"("n2")"));
  CHECK_EQ(api.node_of("a"), "n1");
  CHECK_EQ(api.node_of("b"), "n2");
  CHECK_EQ(api.binds_of(api.uid_of("a")), 1);
}

TEST_CASE("a berth that is killed does not take a job for a queued one before it has heard of its tasks") {
  Volumes api;
  api.make_gang_with_claims();
  api.start_both(1, "n1", "n2");
  api.provision("c0", on("host", R"("n1")"));  // the key of the job does not name it
  api.restart();
  api.pass(2);
  SUBCASE("they come") {
    api.start_both(1, "n1", "n2");
    api.pass(60);
    CHECK_EQ(api.cancelled(1), 0);
    api.provision("c1", on("host", R"("n2")"));
    CHECK_EQ(api.node_of("a"), "n1");
  }
  SUBCASE("there are none") {
    CHECK_EQ(api.cancelled(1), 0);
    api.pass(30);
    CHECK_GE(api.cancelled(1), 1);
  }
}

TEST_CASE("claims that were bound meanwhile make the pods a job of the nodes that they may use now") {
  Volumes api;
  api.storage(kClaim, "c", kOpen);
  api.pod("a", 1, "", uses("c"));
  api.settle();
  REQUIRE_EQ(api.jobs().size(), 1);
  CHECK_EQ(api.rules(0), "");
  api.provision("c", on("host", R"("n3")"));
  api.pass(2);
  CHECK_EQ(api.cancelled(1), 1);
  api.cluster().finished(JobId(1), true, api.now());
  api.settle();
  REQUIRE_EQ(api.jobs().size(), 2);
  CHECK_EQ(api.rules(1), "host in (n3)");
  CHECK(api.jobs()[0].key != api.jobs()[1].key);
  api.restart();
  api.pass(3);
  CHECK_EQ(api.jobs().size(), 2);  // the same key: nothing is submitted again
  CHECK_EQ(api.cancelled(2), 0);
}

TEST_CASE("a job whose pods wait for their volumes is not given up for it") {
  Volumes api;
  api.make_gang_with_claims();
  api.start_both(1, "n1", "n2");
  api.provision("c0", on("host", R"("n1")"));
  api.pass(5);
  CHECK_EQ(api.cancelled(1), 0);
}

TEST_CASE("kinds that may not be read are named by the pods that need them") {
  Volumes api;
  api.cluster().denied(kClaim);
  api.pod("a", 1, "", uses("data"));
  api.pod("plain", 1);
  api.settle();
  CHECK_EQ(api.jobs().size(), 1);
  api.pass(11);
  CHECK(api.told("a").find("berth may not read PersistentVolumeClaims") != std::string::npos);
}

TEST_CASE("a claim that may not be written ends the start, with the API server's words") {
  Volumes api;
  api.storage(kClaim, "c", kOpen);
  api.pod("a", 1, "", uses("c"));
  api.settle();
  api.fault = [&](const Request& request) {
    return request.path.find("persistentvolumeclaims") != std::string::npos ? Answer{403, "no"} : api.serve(request);
  };
  api.start(task_of(1), "n1", 1);
  REQUIRE(api.exit_of(task_of(1)) != nullptr);
  CHECK(api.exit_of(task_of(1))->message.find("write the node into claim c (403): no") != std::string::npos);
}

TEST_CASE("a claim that may not be written for some seconds does not end the start") {
  Volumes api;
  api.storage(kClaim, "c", kOpen);
  api.pod("a", 1, "", uses("c"));
  api.settle();
  int denied = 0;
  api.fault = [&](const Request& request) {
    const bool denies = request.path.find("persistentvolumeclaims") != std::string::npos && ++denied <= 2;
    return denies ? Answer{403, R"({"message":"User \"berth\" cannot patch resource \"persistentvolumeclaims\""})"}
                  : api.serve(request);
  };
  api.start(task_of(1), "n1", 1);
  api.pass(20);
  CHECK(api.exit_of(task_of(1)) == nullptr);
  CHECK_EQ(api.selected_node("c"), "n1");
}

TEST_CASE("a denial of a claim that is over does not make the next denial, a minute later, one for good") {
  Volumes api;
  api.storage(kClaim, "c", kOpen);
  api.pod("a", 1, "", uses("c"));
  api.settle();
  std::string denied = "persistentvolumeclaims";
  int times = 1;
  api.fault = [&](const Request& request) {
    const bool denies = request.path.find(denied) != std::string::npos && times-- > 0;
    return denies ? Answer{403, R"({"message":"User \"berth\" cannot patch resource \"x\""})"} : api.serve(request);
  };
  api.start(task_of(1), "n1", 1);
  api.pass(20);
  REQUIRE_EQ(api.selected_node("c"), "n1");
  api.pass(60);
  denied = "/binding";
  times = 1;
  api.provision("c", on("host", R"("n1")"));
  api.pass(20);
  CHECK(api.exit_of(task_of(1)) == nullptr);
  CHECK_EQ(api.node_of("a"), "n1");
}

TEST_CASE("a suspended Job is admitted when its claims can be used, on the nodes of their volumes") {
  Volumes api;
  const std::string job =
      R"({"metadata":{"name":"train","namespace":"team","uid":"j1","generation":1,"labels":{"berth.dev/queue":)"
      R"("research.nlp"}},"spec":{"suspend":true,"parallelism":2,"completions":2,"completionMode":"Indexed",)"
      R"("template":{"spec":{"schedulerName":"berth","volumes":[{"name":"v","persistentVolumeClaim":{"claimName":)"
      R"("data"}},{"name":"s","ephemeral":{"volumeClaimTemplate":{}}}],"containers":[{"name":"main","resources":)"
      R"({"limits":{"nvidia.com/gpu":1}}}]}}}})";
  api.owner(Kind::kJob, job);
  api.settle();
  CHECK(api.jobs().empty());
  api.storage(kVolume, "v", on("host", R"("n2")"));
  api.storage(kClaim, "data", bound_to("v"));
  api.settle();
  api.pass(2);
  REQUIRE_EQ(api.jobs().size(), 1);
  CHECK_EQ(api.rules(0), "host in (n2)");
  CHECK_EQ(api.jobs()[0].spec.groups[0].count, 2);
  api.pass(3);
  CHECK_EQ(api.cancelled(1), 0);
}

TEST_CASE("with the core: the GPUs of a gang whose claim is never bound become free, and another job starts on them") {
  KubernetesWorld world;
  world.options.volume_wait_s = 30;
  world.restart();
  world.server.add_namespace("team", "research/nlp, ads");
  world.server.put(Kind::kNode, StandInServer::node("n0", 2));
  world.server.add_storage_class("fast");
  for (const char* name : {"a", "b"}) world.server.add_claim("team", name, "fast");
  for (const char* name : {"a", "b"}) world.server.add_gang_pod("team", name, "g", 2, 1, name);
  world.settle();
  world.server.put(Kind::kPod, StandInServer::pod_of("team", "other", 2));
  world.settle();
  world.server.provision("team/a");  // and b never
  world.pass(25);
  CHECK(StandInServer::node_of(world.server.pod("team/a")).empty());
  CHECK(StandInServer::node_of(world.server.pod("team/other")).empty());
  world.pass(15);
  CHECK(StandInServer::node_of(world.server.pod("team/a")).empty());
  CHECK_EQ(StandInServer::node_of(world.server.pod("team/other")), "n0");
  CHECK(world.server.waits.at("team/b").find("claim b is not bound yet") != std::string::npos);
  world.server.run_kubelets();
  world.server.provision("team/b");
  world.server.end("team/other", 0);
  world.pass(5);
  CHECK_EQ(StandInServer::node_of(world.server.pod("team/a")), "n0");
  CHECK_EQ(StandInServer::node_of(world.server.pod("team/b")), "n0");
  for (const std::string& error : world.errors) FAIL_CHECK(error);
}

TEST_CASE("with the core: a gang that has lost a pod gives up its place, and starts once that pod is made anew") {
  KubernetesWorld world;
  world.server.add_namespace("team", "research/nlp, ads");
  world.server.put(Kind::kNode, StandInServer::node("n0", 2));
  world.server.add_storage_class("fast");
  world.server.put(Kind::kPod, StandInServer::pod_of("team", "first", 2));
  world.settle();
  for (const char* name : {"a", "b"}) world.server.add_claim("team", name, "fast");
  for (const char* name : {"a", "b"}) world.server.add_gang_pod("team", name, "g", 2, 1, name);
  world.settle();
  world.server.put(Kind::kPod, StandInServer::pod_of("team", "later", 2));
  world.settle();
  world.server.remove(Kind::kPod, "team/b");
  world.pass(300);
  world.server.run_kubelets();
  world.server.end("team/first", 0);
  world.pass(5);
  CHECK(StandInServer::node_of(world.server.pod("team/a")).empty());
  CHECK_EQ(StandInServer::node_of(world.server.pod("team/later")), "n0");
  world.server.run_kubelets();
  world.server.end("team/later", 0);
  world.server.add_gang_pod("team", "b", "g", 2, 1, "b");
  world.pass(5);
  for (const char* name : {"a", "b"}) world.server.provision("team/" + std::string(name));
  world.pass(5);
  CHECK_EQ(StandInServer::node_of(world.server.pod("team/a")), "n0");
  CHECK_EQ(StandInServer::node_of(world.server.pod("team/b")), "n0");
  for (const std::string& error : world.errors) FAIL_CHECK(error);
}

}  // namespace berth::kube
