#include "kube/cluster.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <utility>

#include "kube/api_stand_in.h"

namespace berth::kube {
namespace {

constexpr const char* kGang = R"("berth.dev/group":"g","berth.dev/group-size":"2")";

TaskKey task(std::uint64_t job, std::uint32_t number = 0, std::uint32_t attempt = 1) {
  return {JobId(job), attempt, number, 1};
}

// Two nodes, and a namespace that may use a queue.
struct Fixture : ApiStandIn {
  explicit Fixture(Options options = {}) : ApiStandIn(std::move(options)) {
    node("n1", 8);
    node("n2", 8);
    name_space("team", "research/nlp, product/*");
    list();
  }
};

struct PullFixture : Fixture {
  static Options short_wait() {
    Options options;
    options.pull_wait_s = 100;
    return options;
  }
  PullFixture() : Fixture(short_wait()) {}
  // Returns the uid of a pod on n2.
  std::string bind() {
    pod("a", 2);
    settle();
    start(task(1), "n2", 2);
    return uid_of("a");
  }
};

}  // namespace

TEST_CASE("nothing is told before every kind was listed, and then nodes come first") {
  ApiStandIn api;
  api.name_space("team", "q");
  api.pod("a", 1);
  api.node("n1", 8);
  api.settle();
  CHECK(api.commands.empty());
  api.list();
  REQUIRE_EQ(api.commands.size(), 2);
  CHECK(std::holds_alternative<RegisterNode>(api.commands[0]));
  CHECK(std::holds_alternative<SubmitJob>(api.commands[1]));
  CHECK_EQ(api.registered.at("n1").gpus.size(), 8);
  CHECK_EQ(api.registered.at("n1").gpus[3].model, "H100");
}

TEST_CASE("what has become of nodes while berth was away is told before they are registered") {
  Options options;
  options.nodes = {{"same", "node-same"},     {"replaced", "old"}, {"gone", "x"},
                   {"silent", "node-silent"}, {"off", "node-off"}, {"unread", "y"}};
  ApiStandIn api(options);
  for (const char* name : {"same", "replaced", "silent", "unread"}) api.node(name, 8);
  api.node("off", 8, R"({"taints":[{"key":"node.kubernetes.io/out-of-service","effect":"NoExecute"}]})");
  api.nodes_.at("silent").at("status").at("conditions").at(0).at("status") = "Unknown";
  api.nodes_.at("unread").at("status").at("allocatable").at("cpu") = "many";
  api.restart();
  std::map<std::string, NodeStatus> told;
  for (const Command& command : api.commands) {
    if (const auto* one = std::get_if<ReportNodeStatus>(&command)) told[one->node] = one->status;
    if (const auto* one = std::get_if<RegisterNode>(&command); one != nullptr && one->spec.name == "replaced")
      CHECK(told.contains("replaced"));
  }
  CHECK(told == std::map<std::string, NodeStatus>{{"replaced", NodeStatus::kLost},
                                                  {"gone", NodeStatus::kLost},
                                                  {"silent", NodeStatus::kUnknown},
                                                  {"off", NodeStatus::kLost}});
  CHECK_EQ(api.registered.size(), 2);
  api.nodes_.at("silent").at("status").at("conditions").at(0).at("status") = "True";
  api.list();
  CHECK(api.registered.contains("silent"));
}

TEST_CASE("a pod is a job, and its start is one binding with the key of its task") {
  Fixture api;
  api.pod("a", 2, "", R"("priorityClassName":"high","terminationGracePeriodSeconds":60)",
          R"("annotations":{"berth.dev/checkpoint":"on-signal"})");
  api.settle();
  REQUIRE_EQ(api.jobs().size(), 1);
  const JobSpec& job = api.jobs()[0].spec;
  CHECK_EQ(job.queue, "research/nlp");
  CHECK_EQ(job.user, "kubernetes:team");
  CHECK_EQ(job.priority_class, "high");
  CHECK_EQ(job.checkpoint.grace_s, 60);
  REQUIRE_EQ(job.groups.size(), 1);
  CHECK_EQ(job.groups[0].request.gpus, 2);
  api.requests.clear();
  api.start(task(1), "n2", 2);
  CHECK_EQ(api.node_of("a"), "n2");
  CHECK_EQ(api.requests.size(), 1);
  CHECK_EQ(text_at(api.pods_.begin()->second, {"metadata", "annotations", "berth.dev/task"}), "1/1/0/1");
  api.run_all();
  api.settle();
  CHECK(api.is_running(task(1)));
  api.phase(api.uid_of("a"), "Failed", 17);
  api.settle();
  REQUIRE(api.exit_of(task(1)));
  CHECK_EQ(api.exit_of(task(1))->code, 17);
  CHECK_EQ(api.exit_of(task(1))->message, "Error");  // the reason alone: no message was told
}

TEST_CASE("the last line of a container that failed is its message, without the end of the line") {
  Fixture api;
  api.pod("a", 2);
  api.settle();
  api.start(task(1), "n2", 2);
  api.pods_.begin()->second["status"] = ApiStandIn::json(
      R"({"phase":"Failed","containerStatuses":[{"state":{"terminated":{"exitCode":7,"reason":"Error","message":"no data\n"}}}]})");
  api.show(api.uid_of("a"));
  api.settle();
  REQUIRE(api.exit_of(task(1)));
  CHECK_EQ(api.exit_of(task(1))->message, "Error no data");
}

TEST_CASE("a bound pod whose container does not start gives its places back after the time that was given") {
  for (const std::string why : {"ImagePullBackOff", "CreateContainerConfigError"}) {
    CAPTURE(why);
    PullFixture api;
    const std::string uid = api.bind();
    const std::string registry(260, 'r');
    api.pods_.at(uid)["status"] =
        ApiStandIn::json(R"({"phase":"Pending","containerStatuses":[{"state":{"waiting":{"reason":")" + why +
                         R"(","message":")" + registry + registry + R"( says no"}}}]})");
    api.show(uid);
    api.pass(90);
    CHECK_FALSE(api.exit_of(task(1)));
    api.requests.clear();
    api.pass(20);
    REQUIRE(api.exit_of(task(1)));
    CHECK_EQ(api.exit_of(task(1))->reason, ExitReason::kStartFailed);
    CHECK_NE(api.exit_of(task(1))->message.find(why), std::string::npos);
    CHECK_NE(api.exit_of(task(1))->message.find("says no"), std::string::npos);
    const auto told = std::count_if(api.requests.begin(), api.requests.end(), [](const Request& one) {
      return one.path.ends_with("/events") && one.body.find("StartGivenUp") != std::string::npos;
    });
    CHECK_EQ(told, 1);
    api.perform(ForgetTask{task(1), "n2"});
    api.pass(10);
    CHECK(api.pods_.empty());
  }
}

TEST_CASE("a pod on a node out of contact keeps its places, whatever was last heard of its container") {
  PullFixture api;
  const std::string uid = api.bind();
  api.pods_.at(uid)["status"] = ApiStandIn::json(
      R"({"phase":"Pending","containerStatuses":[{"state":{"waiting":{"reason":"ImagePullBackOff"}}}]})");
  api.show(uid);
  api.nodes_["n2"]["status"].as_object()["conditions"] = boost::json::parse(R"([{"type":"Ready","status":"Unknown"}])");
  api.list();
  api.pass(300);
  CHECK_FALSE(api.exit_of(task(1)));
  CHECK(api.pods_.contains(uid));
}

TEST_CASE("a pod that does not save its work has the grace of its queue, whatever its own is") {
  Fixture api;
  api.pod("a", 1, "", R"("terminationGracePeriodSeconds":86400)");
  api.settle();
  REQUIRE_EQ(api.jobs().size(), 1);
  CHECK_EQ(api.jobs()[0].spec.checkpoint.grace_s, 0);
}

TEST_CASE("a gang is submitted when all of its pods are there") {
  Fixture api;
  api.pod("a", 4, kGang);
  api.settle();
  CHECK(api.jobs().empty());
  api.pod("b", 4, kGang);
  api.settle();
  REQUIRE_EQ(api.jobs().size(), 1);
  CHECK_EQ(api.jobs()[0].spec.groups[0].count, 2);
  api.start(task(1, 0), "n1", 4);
  api.start(task(1, 1), "n2", 4);
  CHECK_EQ(api.node_of("a"), "n1");
  CHECK_EQ(api.node_of("b"), "n2");
}

TEST_CASE("a group whose pods name two queues does not start, and is told so") {
  Fixture api;
  const std::string gang = kGang;
  api.pod("a", 1, gang + R"(,"berth.dev/queue":"research.nlp")");
  api.pod("b", 1, gang + R"(,"berth.dev/queue":"product.web")");
  api.settle();
  CHECK(api.jobs().empty());
  for (const char* pod : {"a", "b"})
    CHECK_NE(
        api.told(pod).find("the pods of its group name two queues: a is for 'research/nlp', b names 'product.web'"),
        std::string::npos);
}

TEST_CASE("a pod that names no queue is of the queue that its group names") {
  Fixture api;
  const std::string gang = kGang;
  api.pod("a", 1, gang + R"(,"berth.dev/queue":"product.web")");
  api.pod("b", 1, gang);
  api.settle();
  REQUIRE_EQ(api.jobs().size(), 1);
  CHECK_EQ(api.jobs()[0].spec.queue, "product/web");
}

TEST_CASE("a pod without requests is a job of the least that there is") {
  Fixture api;
  api.pod("idle", 0);
  api.settle();
  REQUIRE_EQ(api.jobs().size(), 1);
  const TaskRequest& request = api.jobs()[0].spec.groups[0].request;
  CHECK_EQ(request.gpus, 0);
  CHECK_EQ(request.cpu_milli, 1);
  CHECK_EQ(request.memory_mib, 0);
}

TEST_CASE("pods of a gang that ask for different things are groups of tasks, and each gets a place of its kind") {
  Fixture api;
  api.pod("worker", 8, kGang);
  api.pod("leader", 1, kGang);
  api.settle();
  REQUIRE_EQ(api.jobs().size(), 1);
  REQUIRE_EQ(api.jobs()[0].spec.groups.size(), 2);
  api.start(task(1, 1), "n2", 1);
  api.start(task(1, 0), "n1", 8);
  CHECK_EQ(api.node_of("worker"), "n1");
  CHECK_EQ(api.node_of("leader"), "n2");
}

TEST_CASE("an indexed Job whose pods run together is a gang; its ranks follow the index") {
  Fixture api;
  api.jobs_["J"] = ApiStandIn::json(
      R"({"metadata":{"uid":"J","name":"train","namespace":"team"},"spec":{"parallelism":2,"completions":2,"completionMode":"Indexed"}})");
  const std::string owned =
      R"("ownerReferences":[{"kind":"Job","name":"train","uid":"J","controller":true}],"annotations":{"batch.kubernetes.io/job-completion-index":")";
  api.pod("train-1", 1, "", "", owned + "1\"}");
  api.pod("train-0", 1, "", "", owned + "0\"}");
  api.settle();
  CHECK(api.jobs().empty());  // its owner was not seen yet
  api.cluster().observe(Kind::kJob, api.jobs_["J"], false, api.now());
  api.settle();
  REQUIRE_EQ(api.jobs().size(), 1);
  CHECK_EQ(api.jobs()[0].spec.name, "train");
  CHECK_EQ(api.jobs()[0].spec.groups[0].count, 2);
  api.start(task(1, 1), "n2", 1);
  api.start(task(1, 0), "n1", 1);
  CHECK_EQ(api.node_of("train-0"), "n1");
  CHECK_EQ(api.node_of("train-1"), "n2");

  SUBCASE("after an eviction its controller's new pods are the next attempt of the same job") {
    api.run_all();
    api.settle();
    for (std::uint32_t number : {0U, 1U}) api.perform(KillTask{task(1, number), "", 5000});
    CHECK_EQ(api.deleted.size(), 2);
    for (std::uint32_t number : {0U, 1U}) REQUIRE(api.exit_of(task(1, number)));
    for (std::uint32_t number : {0U, 1U}) api.perform(ForgetTask{task(1, number), ""});
    api.start(task(1, 0, 2), "n2", 1);  // before its pod is there
    CHECK_EQ(api.exit_of(task(1, 0, 2)), nullptr);
    api.pod("train-0-x", 1, "", "", owned + "0\"}");
    api.settle();
    CHECK_EQ(api.node_of("train-0-x"), "n2");
    CHECK_EQ(api.jobs().size(), 1);
  }
  SUBCASE("a start whose pod does not come fails after a while") {
    for (std::uint32_t number : {0U, 1U}) api.remove(api.uid_of("train-" + std::to_string(number)));
    api.settle();
    api.start(task(1, 0, 2), "n2", 1);
    api.pass(119);
    CHECK_EQ(api.exit_of(task(1, 0, 2)), nullptr);
    api.pass(2);
    REQUIRE(api.exit_of(task(1, 0, 2)));
    CHECK_EQ(api.exit_of(task(1, 0, 2))->reason, ExitReason::kStartFailed);
  }
  SUBCASE("a pause of the server does not count as waiting for pods") {
    for (std::uint32_t number : {0U, 1U}) api.remove(api.uid_of("train-" + std::to_string(number)));
    api.settle();
    api.start(task(1, 0, 2), "n2", 1);
    api.commands.clear();
    api.pass(50);
    api.pause(3600);
    api.pod("other", 99);  // the first that is heard
    api.pass(9);
    CHECK_EQ(api.exit_of(task(1, 0, 2)), nullptr);
    CHECK(std::none_of(api.commands.begin(), api.commands.end(),
                       [](const Command& one) { return std::holds_alternative<CancelJob>(one); }));
    api.pause(60);
    api.pass(50);
    CHECK_EQ(api.exit_of(task(1, 0, 2)), nullptr);
    api.pass(20);
    REQUIRE(api.exit_of(task(1, 0, 2)));
    CHECK_EQ(api.exit_of(task(1, 0, 2))->message, "there was no pod for it within 120 s");
  }
  SUBCASE("when all of its pods are gone for a minute, its job is cancelled") {
    for (std::uint32_t number : {0U, 1U}) api.remove(api.uid_of("train-" + std::to_string(number)));
    api.settle();
    api.commands.clear();
    api.pass(59);
    CHECK(api.commands.size() < 4);
    api.pass(3);
    const auto cancels = std::count_if(api.commands.begin(), api.commands.end(),
                                       [](const Command& one) { return std::holds_alternative<CancelJob>(one); });
    CHECK_EQ(cancels, 1);
  }
}

TEST_CASE("a pod alone that is deleted takes its job with it") {
  Fixture api;
  api.pod("a", 1);
  api.settle();
  api.commands.clear();
  api.remove(api.uid_of("a"));
  api.settle();
  REQUIRE_EQ(api.commands.size(), 1);
  CHECK_EQ(std::get<CancelJob>(api.commands[0]).job, JobId(1));
}

TEST_CASE("a namespace uses the queues that its annotation names, and no others") {
  Fixture api;
  api.pod("a", 1, R"("berth.dev/queue":"research.vision")");
  api.pod("b", 1, R"("kueue.x-k8s.io/queue-name":"product.web")");
  api.pod("c", 1, R"("berth.dev/queue":"product")");
  api.settle();
  REQUIRE_EQ(api.jobs().size(), 1);
  CHECK_EQ(api.jobs()[0].spec.queue, "product/web");
  CHECK_NE(
      api.told("a").find("queue 'research.vision' is not one that namespace team may use: research/nlp, product/*"),
      std::string::npos);
  CHECK_NE(api.told("c").find("may use"), std::string::npos);
  api.name_space("team", "product research/vision");
  api.pass(61);
  CHECK_EQ(api.jobs().size(), 3);
}

TEST_CASE("what berth does not understand is told on the pod and not scheduled") {
  const std::vector<std::pair<std::string, std::string>> specs = {
      {R"("topologySpreadConstraints":[{"whenUnsatisfiable":"DoNotSchedule"}])", "topologySpreadConstraints"},
      {R"("affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"kubernetes.io/hostname","labelSelector":{"matchExpressions":[{"key":"a","operator":"Exists"}]}}]}})",
       "podAntiAffinity with the operator Exists for a"},
      {R"("resourceClaims":[{"name":"g"}])", "resourceClaims"},
      {R"("affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"k","operator":"Near","values":["v"]}]}]}}})",
       "node affinity"},
      {R"("initContainers":[{"name":"i","resources":{"requests":{"habana.ai/gaudi":1}}}])", "habana.ai/gaudi"}};
  for (const auto& one : specs) {  // clang-14 takes no structured binding in INFO
    const std::string& spec = one.first;
    const std::string& words = one.second;
    INFO(spec);
    Fixture api;
    api.pod("a", 1, "", spec);
    api.settle();
    CHECK(api.jobs().empty());
    CHECK_NE(api.told("a").find(words), std::string::npos);
  }
}

TEST_CASE("a refusal of the core is told on the pods, and it is asked again later") {
  Fixture api;
  api.refuses = true;
  api.pod("a", 1);
  api.settle();
  CHECK_NE(api.told("a").find("queue 'q' does not exist"), std::string::npos);
  api.refuses = false;
  api.pass(61);
  CHECK_EQ(api.jobs().size(), 2);
  CHECK_EQ(api.jobs_of_core_.size(), 1);
}

TEST_CASE("selectors, tolerations and host ports come with the job") {
  Fixture api;
  api.node(
      "n3", 8,
      R"({"taints":[{"key":"team","value":"a","effect":"NoSchedule"},{"key":"soft","effect":"PreferNoSchedule"}]})");
  api.settle();
  REQUIRE_EQ(api.registered.at("n3").taints.size(), 1);
  CHECK(api.registered.at("n3").taints[0] == Taint{"team", "a"});
  api.pod(
      "a", 1, "",
      R"("nodeSelector":{"zone":"z1"},"tolerations":[{"key":"team","operator":"Equal","value":"b","effect":"NoSchedule"},{"key":"team","operator":"Exists"}])");
  api.settle();
  REQUIRE_EQ(api.jobs().size(), 1);
  const TaskGroup& group = api.jobs()[0].spec.groups[0];
  CHECK_EQ(group.node_selector, Labels{{"zone", "z1"}});
  CHECK_EQ(group.tolerations, std::vector<std::string>{"team", "team=b:NoSchedule"});
}

TEST_CASE("a start that comes before the answer to the submission finds its pods by the source of its job") {
  Fixture api;
  api.answers = false;
  api.pod("a", 1);
  api.settle();
  REQUIRE_EQ(api.jobs().size(), 1);
  const JobSource source = api.jobs()[0].spec.source;
  CHECK_EQ(source.key, api.jobs()[0].key);
  CHECK_EQ(api.jobs()[0].spec.comment, "");
  StartTask start;
  start.key = task(1);
  start.node = "n1";
  start.gpu_uuids = {"node-n1:0"};
  SUBCASE("its own") {
    start.source = source;
    api.start(start);
    CHECK_EQ(api.node_of("a"), "n1");
  }
  SUBCASE("of another cell") {
    start.source = {"elsewhere", source.key};
    api.start(start);
    CHECK_EQ(api.node_of("a"), "");
  }
}

TEST_CASE("pods that others have bound take their use from the node") {
  Fixture api;
  api.pod("a", 3, "", R"("nodeName":"n1")");
  api.settle();
  CHECK_EQ(api.foreign.at("n1").gpus.size(), 3);
  CHECK(std::ranges::all_of(api.registered.at("n1").gpus, [](const Gpu& gpu) { return gpu.healthy; }));
  CHECK(api.jobs().empty());
  api.phase(api.uid_of("a"), "Succeeded");
  api.settle();
  CHECK_EQ(api.foreign.at("n1"), ForeignReport());
}

TEST_CASE("foreign use is put on GPUs that no task of ours has") {
  Fixture api;
  api.pod("ours", 2);
  api.settle();
  api.start(task(1), "n1", 2, 6);  // the last two
  api.pod("foreign", 3, "", R"("nodeName":"n1")");
  api.settle();
  const std::vector<Gpu>& gpus = api.registered.at("n1").gpus;
  const std::set<std::string>& theirs = api.foreign.at("n1").gpus;
  CHECK_FALSE(theirs.contains(gpus[6].uuid));
  CHECK_FALSE(theirs.contains(gpus[7].uuid));
  CHECK_EQ(theirs.size(), 3);
}

TEST_CASE("a node that is not ready is unknown; one that is deleted or out of service is lost") {
  Fixture api;
  api.nodes_["n1"]["status"].as_object()["conditions"] = boost::json::parse(R"([{"type":"Ready","status":"Unknown"}])");
  api.cluster().observe(Kind::kNode, api.nodes_["n1"], false, api.now());
  api.settle();
  CHECK_EQ(api.status.at("n1"), NodeStatus::kUnknown);
  api.node("n1", 8);
  api.settle();
  CHECK_EQ(api.status.at("n1"), NodeStatus::kReady);
  api.node("n1", 8, R"({"taints":[{"key":"node.kubernetes.io/out-of-service","effect":"NoExecute"}]})");
  api.settle();
  CHECK_EQ(api.status.at("n1"), NodeStatus::kLost);
  CHECK(api.removed.empty());
  api.nodes_.erase("n2");
  api.list();  // it went while nobody watched
  CHECK_EQ(api.status.at("n2"), NodeStatus::kLost);
  CHECK(api.removed == std::set<std::string>{"n2"});
  api.nodes_.erase("n1");
  api.list();  // lost already, and only now no more part of the cluster
  CHECK(api.removed == std::set<std::string>{"n1", "n2"});
}

TEST_CASE("a node that was lost before the start is told to be removed when its object is deleted") {
  Options options;
  options.nodes = {{"off", "node-off", true}, {"gone", "x", true}};
  ApiStandIn api(options);
  api.node("off", 8, R"({"taints":[{"key":"node.kubernetes.io/out-of-service","effect":"NoExecute"}]})");
  api.restart();
  CHECK(api.removed == std::set<std::string>{"gone"});
  api.nodes_.erase("off");
  api.list();
  CHECK(api.removed == std::set<std::string>{"gone", "off"});
}

TEST_CASE("a node that was replaced by one that is not ready is lost, and removed when that is deleted") {
  Fixture api;
  api.nodes_["n1"]["metadata"].as_object()["uid"] = "another";
  api.nodes_["n1"]["status"].as_object()["conditions"] = boost::json::parse(R"([{"type":"Ready","status":"Unknown"}])");
  api.list();
  CHECK_EQ(api.status.at("n1"), NodeStatus::kLost);
  api.nodes_.erase("n1");
  api.list();
  CHECK(api.removed == std::set<std::string>{"n1"});
}

TEST_CASE("a cordoned node is tainted") {
  Fixture api;
  api.node("n1", 8, R"({"unschedulable":true})");
  api.settle();
  REQUIRE_EQ(api.registered.at("n1").taints.size(), 1);
  CHECK_EQ(api.registered.at("n1").taints[0].key, "node.kubernetes.io/unschedulable");
}

TEST_CASE("devices that vanish for a moment while tasks run are still there") {
  Fixture api;
  api.pod("a", 2);
  api.settle();
  api.start(task(1), "n1", 2);
  api.node("n1", 0);
  api.settle();
  CHECK_EQ(api.registered.at("n1").gpus.size(), 8);
  api.pass(30);
  CHECK_EQ(api.registered.at("n1").gpus.size(), 8);
  api.pass(31);
  CHECK_EQ(api.registered.at("n1").gpus.size(), 0);
}

TEST_CASE("a binding without an answer is decided by the pod") {
  Fixture api;
  api.pod("a", 1);
  api.settle();
  SUBCASE("it has happened") {
    api.shows = false;
    api.fault = [&](const Request& request) {
      const Answer answer = api.serve(request);
      return request.method == Method::kPost ? Answer{0, ""} : answer;
    };
    api.start(task(1), "n1", 1);
    api.shows = true;
    api.run_all();
    api.settle();
    CHECK(api.is_running(task(1)));
    CHECK_EQ(api.binds_of(api.uid_of("a")), 1);
  }
  SUBCASE("it has not happened") {
    int lost = 3;
    api.fault = [&](const Request& request) {
      return request.method == Method::kPost && lost-- > 0 ? Answer{0, ""} : api.serve(request);
    };
    api.start(task(1), "n1", 1);
    api.pass(30);
    CHECK_EQ(api.node_of("a"), "n1");
    CHECK_EQ(api.binds_of(api.uid_of("a")), 1);
  }
  SUBCASE("another has bound it") {
    api.shows = false;
    api.pods_.begin()->second["spec"].as_object()["nodeName"] = "n2";
    api.start(task(1), "n1", 1);
    REQUIRE(api.exit_of(task(1)));
    CHECK_EQ(api.exit_of(task(1))->reason, ExitReason::kStartFailed);
    CHECK_NE(api.exit_of(task(1))->message.find("by another"), std::string::npos);
  }
  SUBCASE("it is refused") {
    api.fault = [&](const Request& request) {
      return request.method == Method::kPost ? Answer{403, "pods/binding is forbidden"} : api.serve(request);
    };
    api.start(task(1), "n1", 1);
    REQUIRE(api.exit_of(task(1)));
    CHECK_NE(api.exit_of(task(1))->message.find("403"), std::string::npos);
  }
}

TEST_CASE("a binding that an API server denies which has just started is tried again for a minute") {
  constexpr const char* kNoRoles =
      R"({"message":"pods \"a\" is forbidden: User \"berth\" cannot create resource \"pods/binding\" in API group"})";
  constexpr const char* kNotReady = R"({"message":"pods \"a\" is forbidden: not yet ready to handle request"})";
  for (const char* why : {kNoRoles, kNotReady}) {
    for (const bool for_ever : {false, true}) {
      CAPTURE(why);
      CAPTURE(for_ever);
      Fixture api;
      api.pod("a", 1);
      api.settle();
      int denied = 0;
      api.fault = [&](const Request& request) {
        const bool denies = request.path.ends_with("/binding") && (for_ever || denied < 2);
        denied += denies ? 1 : 0;
        return denies ? Answer{403, why} : api.serve(request);
      };
      api.start(task(1), "n1", 1);
      api.pass(50);
      CHECK(api.exit_of(task(1)) == nullptr);
      CHECK_EQ(api.node_of("a"), for_ever ? "" : "n1");
      api.pass(20);
      REQUIRE_EQ(api.exit_of(task(1)) != nullptr, for_ever);
      if (for_ever) CHECK_NE(api.exit_of(task(1))->message.find("refused to bind"), std::string::npos);
    }
  }
}

TEST_CASE("after a restart a bound pod is its task, and one that has gone has ended") {
  Fixture api;
  api.pod("a", 1);
  api.pod("b", 1);
  api.settle();
  api.start(task(1), "n1", 1);
  api.start(task(2), "n1", 1, 1);
  api.run_all();
  api.settle();
  api.shows = false;
  api.remove(api.uid_of("b"));
  api.shows = true;
  api.requests.clear();
  api.restart();
  CHECK_EQ(api.exit_of(task(1)), nullptr);
  REQUIRE(api.exit_of(task(2)));
  CHECK_EQ(api.exit_of(task(2))->reason, ExitReason::kSupervisorLost);
  CHECK(api.requests.empty());
  CHECK_EQ(api.free_cpu("n1"), 64'000);  // what is ours is not foreign
  CHECK_EQ(api.jobs_of_core_.size(), 2);
}

TEST_CASE("a pod that was deleted before it could start takes its job with it, also while nobody watched") {
  Fixture api;
  api.pod("a", 1);
  api.settle();
  api.start(task(1), "n1", 1);  // bound, and not seen to run
  api.shows = false;
  api.remove(api.uid_of("a"));
  api.shows = true;
  api.restart();
  REQUIRE(api.exit_of(task(1)));
  CHECK_EQ(api.exit_of(task(1))->reason, ExitReason::kKilled);
}

TEST_CASE("a key that a pod of others carries makes it no task") {
  Fixture api;
  api.pod("victim", 1);
  api.settle();
  api.start(task(1), "n1", 1);
  api.run_all();
  api.settle();
  api.pod("forged", 2, "", R"("nodeName":"n1")",
          R"("annotations":{"berth.dev/task":")" + text_of_task(task(1)) + R"("})");
  api.settle();
  api.pod("other-log", 2, "", R"("nodeName":"n1")",
          R"("annotations":{"berth.dev/log":"another","berth.dev/task":")" + text_of_task(task(1)) + R"("})");
  api.settle();
  api.restart();
  api.pass(31);
  CHECK_EQ(api.deleted.size(), 1);  // the forged one: a pod that is bound as a task which it is not
  CHECK_EQ(api.uid_of("forged"), "");
  CHECK_EQ(api.free_cpu("n1"), 64'000);
  CHECK_EQ(api.foreign.at("n1").gpus.size(),
           2);  // what a berth with another log has bound is foreign
  CHECK_EQ(api.exit_of(task(1)), nullptr);
  CHECK(api.is_running(task(1)));
}

TEST_CASE("a pod says at once what is wrong with it, also where its gang is not whole") {
  Fixture api;
  api.pod("part", 1, R"("berth.dev/group":"g","berth.dev/group-size":"-1")");
  api.pod("absurd", 4'000'000);
  api.settle();
  CHECK_NE(api.told("part").find("group-size"), std::string::npos);
  CHECK_NE(api.told("absurd").find("nvidia.com/gpu"), std::string::npos);
  CHECK(api.jobs().empty());
}

TEST_CASE("a pod is marked as disrupted before it is deleted, and only once") {
  Fixture api;
  api.pod("a", 1);
  api.settle();
  api.start(task(1), "n1", 1);
  api.requests.clear();
  api.perform(KillTask{task(1), "", 5'000});
  REQUIRE_EQ(api.requests.size(), 2);
  CHECK_NE(api.requests[0].body.find("DisruptionTarget"), std::string::npos);
  CHECK_EQ(api.requests[1].method, Method::kDelete);
}

TEST_CASE("a kill asks again until the pod is gone, and spares another pod of the same name") {
  Fixture api;
  api.pod("a", 1);
  api.settle();
  api.start(task(1), "n1", 1);
  SUBCASE("unanswered") {
    int lost = 2;
    api.fault = [&](const Request& request) {
      return request.method == Method::kDelete && lost-- > 0 ? Answer{0, ""} : api.serve(request);
    };
    api.perform(KillTask{task(1), "", 0});
    CHECK_EQ(api.exit_of(task(1)), nullptr);
    api.pass(12);
    REQUIRE(api.exit_of(task(1)));
    CHECK_EQ(integer_at(ApiStandIn::json(api.requests.back().body), {"gracePeriodSeconds"}, 0), 1);
  }
  SUBCASE("replaced") {
    api.shows = false;
    api.remove(api.uid_of("a"));
    api.pod("a", 1);
    api.perform(KillTask{task(1), "", 0});
    CHECK(api.deleted.empty());
    CHECK(api.exit_of(task(1)));
  }
}

TEST_CASE("pods that a user of berth has cancelled are not submitted again") {
  Fixture api;
  api.pod("a", 1);
  api.settle();
  api.cluster().finished(JobId(1), true, api.now());
  api.settle();
  api.pass(130);
  CHECK_EQ(api.jobs().size(), 1);
  CHECK_NE(api.told("a").find("was cancelled"), std::string::npos);
}

TEST_CASE("why a job waits is told once for each change") {
  Fixture api;
  api.pod("a", 1);
  api.settle();
  api.requests.clear();
  for (int time = 0; time < 3; ++time) api.cluster().waits(JobId(1), "it waits for 1 free GPU", api.now());
  api.settle();
  CHECK_EQ(api.requests.size(), 2);  // a condition and an Event
  CHECK_NE(api.told("a").find("it waits for 1 free GPU"), std::string::npos);
}

TEST_CASE("hostile objects harm nothing else") {
  Fixture api;
  std::string many;
  for (int container = 0; container < 10'000; ++container)
    many += std::string(container == 0 ? "" : ",") + R"({"name":"i"})";
  api.pod("many", 1, "", R"("initContainers":[)" + many + "]");
  api.pod("negative", 1, "", R"("overhead":{"cpu":"-5"})");
  api.pod("huge", 1, "", R"("overhead":{"memory":"9999999999999999999E"})");
  api.pod("control", 1, R"("berth.dev/queue":"a\u0000b\u001b[31m")");
  api.pod("notes", 1, "", "", R"("annotations":{"x":")" + std::string(3 << 20, 'x') + "\"}");
  api.pod("size", 1, R"("berth.dev/group":"g","berth.dev/group-size":"99999999999")");
  api.cluster().observe(Kind::kPod, ApiStandIn::json(R"({"metadata":7,"spec":[]})"), false, api.now());
  api.cluster().observe(
      Kind::kNode, ApiStandIn::json(R"({"metadata":{"name":"bad","uid":"u"},"status":{"allocatable":{"cpu":"-1"}}})"),
      false, api.now());
  api.pod("good", 1);
  api.settle();
  REQUIRE_EQ(api.jobs().size(), 2);  // notes, good
  api.start(task(2), "n1", 1);
  CHECK_EQ(api.node_of("good"), "n1");
  CHECK_FALSE(api.registered.contains("bad"));
  CHECK_GE(api.cluster().warnings().size(), 4);
  CHECK_EQ(api.told("control").find('\x1b'), std::string::npos);
}

TEST_CASE("a key that was taken off a pod, or changed, is that of no task") {
  Fixture api;
  api.pod("a", 1, kGang);
  api.pod("b", 1, kGang);
  api.settle();
  api.pod("x", 1, kGang, R"("nodeName":"n1")", R"("annotations":{"berth.dev/task":"1/2/0/1"})");
  const std::string uid = api.uid_of("x");
  api.pods_[uid]["metadata"].as_object()["annotations"] = ApiStandIn::json(R"({"berth.dev/task":"1/9/0/1"})");
  api.show(uid);
  api.remove(uid);
  api.start(task(1, 0, 2), "n1", 1);
  CHECK_EQ(api.node_of("a"), "n1");
}

TEST_CASE("a pod that carries the key of a task of its gang, but another node or more GPUs, is foreign") {
  Fixture api;
  api.pod("a", 0, kGang);
  api.pod("b", 0, kGang);
  api.settle();
  api.pass(1);
  api.pod("x", 8, kGang, R"("nodeName":"n1")", R"("annotations":{"berth.dev/task":"1/1/0/1"})");
  api.pod("y", 0, kGang, R"("nodeName":"n2")", R"("annotations":{"berth.dev/task":"1/1/0/1"})");
  api.start(task(1), "n1", 0);
  CHECK_EQ(api.node_of("a"), "n1");
  CHECK_EQ(api.foreign.at("n1").gpus.size(), 8);
}

TEST_CASE("a pod with the key of two tasks is only the first") {
  Fixture api;
  api.pod("a", 1, kGang);
  api.pod("b", 1, kGang);
  api.settle();
  api.start(task(1, 0), "n1", 1);
  const std::string uid = api.uid_of("a");
  api.pods_[uid]["metadata"].as_object()["annotations"] = ApiStandIn::json(R"({"berth.dev/task":"1/1/1/1"})");
  api.show(uid);
  api.start(task(1, 1), "n1", 1, 1);
  CHECK_EQ(api.node_of("b"), "n1");
  api.remove(uid);
  api.settle();
  CHECK(api.exit_of(task(1, 0)));
  CHECK_EQ(api.exit_of(task(1, 1)), nullptr);
}

TEST_CASE("a pod that joined its gang later is bound only if berth understands it and the node is one it selects") {
  Fixture api;
  api.node("n3", 8);
  api.nodes_["n3"]["metadata"].as_object()["labels"].as_object()["disk"] = "nvme";
  api.cluster().observe(Kind::kNode, api.nodes_["n3"], false, api.now());
  api.pod("a", 0, kGang);
  api.pod("b", 0, kGang);
  api.settle();
  REQUIRE_EQ(api.jobs().size(), 1);
  const std::string first = R"("annotations":{"berth.dev/index":"0"})";
  std::string many = R"({"name":"x","resources":{"limits":{"nvidia.com/gpu":"8"}}})";
  for (int container = 0; container < 1000; ++container) many += R"(,{"name":"i"})";
  api.pod("unread", 0, kGang, R"("initContainers":[)" + many + "]", first);
  api.pod("mig", 0, kGang, R"("overhead":{"nvidia.com/mig-1g.10gb":"7"})", first);
  api.pod("picky", 0, kGang, R"("nodeSelector":{"disk":"nvme"})", first);
  api.start(task(1), "n1", 0);
  CHECK_EQ(api.node_of("unread") + api.node_of("mig") + api.node_of("picky"), "");
  CHECK_EQ(api.node_of("a"), "n1");
  api.start(task(1, 1), "n3", 0);
  CHECK_EQ(api.node_of("picky") + api.node_of("b"), "n3");
}

TEST_CASE("nobody joins the gang of another namespace, or takes its tasks, by naming its Job as the owner") {
  Fixture api;
  api.jobs_["J"] = ApiStandIn::json(
      R"({"metadata":{"uid":"J","name":"train","namespace":"rich"},"spec":{"parallelism":2,"completions":2,"completionMode":"Indexed"}})");
  api.list();
  const std::string owned =
      R"("ownerReferences":[{"apiVersion":"batch/v1","kind":"Job","name":"train","uid":"J","controller":true}])";
  api.pod("thief-0", 1, "", "", owned);
  api.pod("thief-1", 1, "", "", owned);
  api.settle();
  CHECK(api.jobs().empty());
  api.pass(70);
  CHECK_NE(api.told("thief-0").find("its Job"), std::string::npos);
}

TEST_CASE("a pod whose owner is changed is still found when it goes") {
  Fixture api;
  const std::string job =
      R"({"metadata":{"uid":"J","name":"j","namespace":"team"},"spec":{"parallelism":2,"completions":2,"completionMode":"Indexed"}})";
  const std::string owner = R"([{"apiVersion":"batch/v1","kind":"Job","name":"j","uid":")";
  api.pod("a", 1, "", "", R"("ownerReferences":)" + owner + R"(J","controller":true}])");
  const std::string uid = api.uid_of("a");
  api.pods_[uid]["metadata"].as_object()["ownerReferences"] = boost::json::parse(owner + R"(K","controller":true}])");
  api.show(uid);
  api.remove(uid);
  api.cluster().observe(Kind::kJob, ApiStandIn::json(job), false, api.now());  // was: map::at
  api.settle();
  CHECK(api.jobs().empty());
}

TEST_CASE("a Job of another kind of API is no Job of Kubernetes") {
  Fixture api;
  api.pod(
      "volcano-0", 1, "", "",
      R"("ownerReferences":[{"apiVersion":"batch.volcano.sh/v1alpha1","kind":"Job","name":"v","uid":"V","controller":true}])");
  api.settle();
  CHECK_EQ(api.jobs().size(), 1);
}

TEST_CASE("what a foreign pod is counted for is what it is given back for, also when it was resized") {
  Fixture api;
  api.pod("f", 0, "", R"("nodeName":"n1","overhead":{"cpu":"1"})");
  api.settle();
  CHECK_EQ(api.free_cpu("n1"), 63'000);
  const std::string uid = api.uid_of("f");
  api.pods_[uid]["spec"].as_object()["overhead"] = ApiStandIn::json(R"({"cpu":"40"})");
  api.show(uid);
  api.settle();
  CHECK_EQ(api.free_cpu("n1"), 24'000);
  api.remove(uid);
  api.settle();
  CHECK_EQ(api.free_cpu("n1"), 64'000);
}

TEST_CASE("a pod of ours that grows takes what it has grown by from its node") {
  Fixture api;
  api.pod("a", 1);
  api.settle();
  api.start(task(1), "n1", 1);
  const std::string uid = api.uid_of("a");
  api.pods_[uid]["spec"].as_object()["overhead"] = ApiStandIn::json(R"({"cpu":"40"})");
  api.show(uid);
  api.settle();
  CHECK_EQ(api.free_cpu("n1"), 24'000);
}

TEST_CASE("absurd requests of many foreign pods do not make a node larger") {
  Fixture api;
  std::string many;
  for (int container = 0; container < 999; ++container)
    many += std::string(container == 0 ? "" : ",") +
            R"({"name":"i","restartPolicy":"Always","resources":{"limits":{"cpu":"1100G"}}})";
  for (int pod = 0; pod < 20; ++pod) {
    api.pod("f" + std::to_string(pod), 0, "", R"("nodeName":"n1","initContainers":[)" + many + "]");
    api.settle();
    REQUIRE_EQ(api.free_cpu("n1"), 0);
  }
}

TEST_CASE("the pod of a task that was given up with its node is foreign on the node that comes back, and is deleted") {
  Fixture api;
  api.pod("a", 8);
  api.settle();
  api.start(task(1), "n1", 8);
  api.run_all();
  api.settle();
  api.pass(60);
  api.cluster().observe(Kind::kNode, api.nodes_["n1"], true, api.now());
  api.settle();
  api.perform(ForgetTask{task(1), "n1"});
  api.node("n1", 8);
  api.settle();
  CHECK_EQ(api.foreign.at("n1").gpus.size(), 8);
  api.pass(2);
  CHECK_EQ(api.uid_of("a"), "");
  CHECK(api.foreign.at("n1").gpus.empty());
}

TEST_CASE("resources of the whole pod are what it asks for") {
  Fixture api;
  api.pod("a", 1, "", R"("resources":{"requests":{"cpu":"60","memory":"1Gi"}})");
  api.settle();
  REQUIRE_EQ(api.jobs().size(), 1);
  CHECK_EQ(api.jobs()[0].spec.groups[0].request.cpu_milli, 60'000);
}

TEST_CASE("pods that wait for something other than berth's decision say for what") {
  Fixture api;
  SUBCASE("the gang is not whole") {
    api.pod("a", 1, kGang);
    api.pass(12);
    CHECK_NE(api.told("a").find("1 of the 2 pods"), std::string::npos);
    const std::size_t writes = api.requests.size();
    api.pass(300);
    CHECK_EQ(api.requests.size(), writes);
  }
  SUBCASE("its PodGroup is not known") {
    api.pod("a", 1, "", R"("schedulingGroup":{"podGroupName":"pg"})");
    api.pass(12);
    CHECK_NE(api.told("a").find("PodGroup"), std::string::npos);
  }
  SUBCASE("its job is over") {
    api.pod("a", 1);
    api.settle();
    api.cluster().finished(JobId(1), false, api.now());
    api.pass(12);
    CHECK_NE(api.told("a").find("is over"), std::string::npos);
  }
  SUBCASE("its group was cancelled before it was made") {
    api.pod("a", 1, kGang);
    api.pod("b", 1, kGang);
    api.settle();
    api.cluster().finished(JobId(1), true, api.now());
    api.pod("c", 1, kGang);
    api.pass(12);
    CHECK_NE(api.told("c").find("cancelled"), std::string::npos);
  }
  SUBCASE("its gang runs without it") {
    api.pod("a", 1, kGang);
    api.pod("b", 1, kGang);
    api.settle();
    api.start(task(1, 0), "n1", 1);
    api.start(task(1, 1), "n1", 1, 1);
    api.pod("c", 1, kGang);
    api.pass(12);
    CHECK_NE(api.told("c").find("without it"), std::string::npos);
  }
}

}  // namespace berth::kube
