// Owners of pods: what their objects say, and to which of them a pod belongs.

#include "kube/workload.h"

#include <doctest/doctest.h>

#include <boost/json/parse.hpp>

#include "kube/api_stand_in.h"

namespace berth::kube {
namespace {

boost::json::object json(const std::string& text) { return boost::json::parse(text).as_object(); }

TaskKey rank_of(std::uint32_t number, std::uint32_t attempt = 1, std::uint64_t job = 1) {
  return {JobId(job), attempt, number, 1};
}

struct OwnedPods : ApiStandIn {
  OwnedPods() {
    node("n1", 8);
    node("n2", 8);
    name_space("team", "research");
    list();
  }
  std::vector<std::pair<std::string, int>> groups_of(std::size_t job) const {
    std::vector<std::pair<std::string, int>> groups;
    for (const TaskGroup& group : jobs().at(job).spec.groups) groups.emplace_back(group.name, group.count);
    return groups;
  }
};

using Groups = std::vector<std::pair<std::string, int>>;

std::string job_set_pod(const std::string& role, int job, int index) {
  return R"("labels":{"jobset.sigs.k8s.io/jobset-name":"js","jobset.sigs.k8s.io/replicatedjob-name":")" + role +
         R"(","jobset.sigs.k8s.io/job-index":")" + std::to_string(job) +
         R"("},"annotations":{"batch.kubernetes.io/job-completion-index":")" + std::to_string(index) +
         R"("},"ownerReferences":[{"apiVersion":"batch/v1","kind":"Job","name":"js-x","uid":"J","controller":true}])";
}

constexpr const char* kJobSet =
    R"({"metadata":{"name":"js","namespace":"team","labels":{"kueue.x-k8s.io/queue-name":"research"}},"spec":{"replicatedJobs":[
        {"name":"driver","template":{"spec":{"parallelism":1}}},
        {"name":"workers","replicas":2,"template":{"spec":{"parallelism":2}}}]}})";

}  // namespace

TEST_CASE("each kind says how many pods are its gang, and in which order they are ranked") {
  struct Row {
    Kind kind;
    std::string object;
    std::vector<Role> roles;
  };
  const std::vector<Row> rows = {
      {Kind::kJobSet, kJobSet, {{"driver", 1, 1}, {"workers", 4, 2}}},
      {Kind::kPyTorchJob,
       R"({"spec":{"pytorchReplicaSpecs":{"Worker":{"replicas":3},"Master":{}}}})",
       {{"master", 1, 1}, {"worker", 3, 1}}},
      {Kind::kTfJob,
       R"({"spec":{"tfReplicaSpecs":{"Worker":{"replicas":2},"PS":{"replicas":1},"Chief":{"replicas":1}}}})",
       {{"chief", 1, 1}, {"ps", 1, 1}, {"worker", 2, 1}}},
      {Kind::kMpiJob,
       R"({"spec":{"mpiReplicaSpecs":{"Worker":{"replicas":2},"Launcher":{"replicas":1}}}})",
       {{"launcher", 1, 1}, {"worker", 2, 1}}},
      {Kind::kRayCluster,
       R"({"spec":{"headGroupSpec":{},"workerGroupSpecs":[{"groupName":"gpu","replicas":2,"minReplicas":1,"numOfHosts":4},
           {"groupName":"off","replicas":2,"suspend":true}]}})",
       {{"headgroup", 1, 1}, {"gpu", 8, 4}, {"off", 0, 1}}},
      {Kind::kRayCluster,
       R"({"spec":{"enableInTreeAutoscaling":true,"workerGroupSpecs":[{"groupName":"gpu","replicas":3,"minReplicas":1}]}})",
       {{"headgroup", 1, 1}, {"gpu", 1, 1}}},
      {Kind::kVolcanoPodGroup, R"({"spec":{"minMember":3}})", {{"", 3, 1}}},
      {Kind::kKaiPodGroup, R"({"spec":{"minMember":2}})", {{"", 2, 1}}},
      {Kind::kVolcanoPodGroup, R"({"spec":{"minMember":-3}})", {}},
      {Kind::kJobSet, R"({"spec":{"replicatedJobs":"all"}})", {}},
      {Kind::kPyTorchJob,
       R"({"spec":{"pytorchReplicaSpecs":{"Worker":{"replicas":9000000000000000000}}}})",
       {{"worker", kMaxTasksPerJob, 1}}},
      {Kind::kJobSet,
       R"({"spec":{"replicatedJobs":[{"name":"a","replicas":65536,"template":{"spec":{"parallelism":65536}}}]}})",
       {{"a", kMaxTasksPerJob, kMaxTasksPerJob}}}};
  for (const Row& row : rows) {
    INFO(row.object);
    CHECK(read_workload(row.kind, json(row.object)).roles == row.roles);
  }
}

TEST_CASE("a workload whose parts start one after another is several gangs") {
  CHECK_FALSE(read_workload(Kind::kJobSet, json(kJobSet)).apart);
  CHECK(read_workload(Kind::kJobSet, json(R"({"spec":{"startupPolicy":{"startupPolicyOrder":"InOrder"}}})")).apart);
  CHECK(read_workload(Kind::kJobSet, json(R"({"spec":{"replicatedJobs":[{"name":"b","dependsOn":[{"name":"a"}]}]}})"))
            .apart);
  CHECK(read_workload(Kind::kLeaderWorkerSet, json(R"({"spec":{"startupPolicy":"LeaderReady"}})")).apart);
}

TEST_CASE("a workload that has completed or failed makes no pods any more") {
  for (const char* type : {"Complete", "Completed", "Succeeded", "Failed"}) {
    INFO(type);
    CHECK(read_workload(Kind::kJobSet,
                        json(R"({"status":{"conditions":[{"type":")" + std::string(type) + R"(","status":"True"}]}})"))
              .over);
    CHECK_FALSE(read_workload(Kind::kJobSet, json(R"({"status":{"conditions":[{"type":")" + std::string(type) +
                                                  R"(","status":"False"}]}})"))
                    .over);
  }
}

TEST_CASE("what controllers write into pods says where they belong") {
  const auto of = [](const std::string& metadata) {
    return membership_of(json(R"({"metadata":{"namespace":"team",)" + metadata + "}}"));
  };
  const Membership job_set = of(job_set_pod("workers", 1, 0));
  CHECK_EQ(job_set.owner, "jobset/team/js");
  CHECK_EQ(job_set.role, "workers");
  CHECK_EQ(job_set.job, 1);
  const Membership leader = of(
      R"("labels":{"leaderworkerset.sigs.k8s.io/name":"serve","leaderworkerset.sigs.k8s.io/group-index":"3","leaderworkerset.sigs.k8s.io/worker-index":"0"},
         "annotations":{"leaderworkerset.sigs.k8s.io/size":"4"})");
  CHECK_EQ(leader.owner, "leaderworkerset/team/serve");
  CHECK_EQ(leader.part, "3");
  CHECK_EQ(leader.role, "leader");
  CHECK_EQ(leader.size, 4);
  CHECK(leader.serves);
  const auto owned = [&](const std::string& version, const std::string& kind, const std::string& labels) {
    return of(R"("labels":{)" + labels + R"(},"ownerReferences":[{"apiVersion":")" + version + R"(","kind":")" + kind +
              R"(","name":"x","uid":"u","controller":true}])");
  };
  const Membership worker =
      owned("kubeflow.org/v1", "PyTorchJob",
            R"("training.kubeflow.org/replica-type":"Worker","training.kubeflow.org/replica-index":"2")");
  CHECK_EQ(worker.owner, "pytorchjob/team/x");
  CHECK_EQ(worker.role, "worker");
  CHECK_EQ(worker.index, 2);
  CHECK_EQ(owned("ray.io/v1", "RayCluster", R"("ray.io/node-type":"head","ray.io/group":"headgroup")").role,
           "headgroup");
  CHECK(owned("ray.io/v1", "RayCluster", R"("ray.io/originated-from-crd":"RayService")").serves);
  CHECK_EQ(of(R"("annotations":{"scheduling.k8s.io/group-name":"g"})").owner, "volcano-podgroup/team/g");
  CHECK_EQ(of(R"("annotations":{"pod-group-name":"g"})").owner, "kai-podgroup/team/g");
  CHECK_EQ(of(R"("labels":{"scheduling.x-k8s.io/pod-group":"g"})").owner, "coscheduling-podgroup/team/g");
  // Labels of Ray on pods that no RayCluster owns, and owners of the same name in another API group.
  CHECK_EQ(of(R"("labels":{"ray.io/cluster":"c"})").owner, "");
  CHECK_EQ(owned("example.com/v1", "PyTorchJob", "").owner, "");
}

TEST_CASE("the pods of a JobSet are one gang, with its replicated jobs as task groups and the ranks in order") {
  OwnedPods api;
  for (const auto& [role, job, index] : std::vector<std::tuple<std::string, int, int>>{
           {"workers", 1, 1}, {"workers", 0, 0}, {"workers", 1, 0}, {"driver", 0, 0}}) {
    api.pod(role + "-" + std::to_string(job) + std::to_string(index), 1, "", "", job_set_pod(role, job, index));
  }
  api.settle();
  CHECK(api.jobs().empty());
  api.pass(11);
  CHECK_NE(api.told("driver-00").find("its JobSet js is not one of namespace team"), std::string::npos);
  api.owner(Kind::kJobSet, kJobSet);
  api.settle();
  CHECK(api.jobs().empty());
  api.pass(11);
  CHECK_NE(api.told("driver-00").find("its controller has made 4 of 5 pods"), std::string::npos);
  api.pod("workers-01", 1, "", "", job_set_pod("workers", 0, 1));
  api.settle();
  REQUIRE_EQ(api.jobs().size(), 1);
  CHECK_EQ(api.jobs()[0].spec.queue, "research");
  CHECK(api.groups_of(0) == Groups{{"driver", 1}, {"workers", 4}});
  const char* in_rank_order[] = {"driver-00", "workers-00", "workers-01", "workers-10", "workers-11"};
  for (std::uint32_t number : {4U, 2U, 0U, 1U, 3U})
    api.start(rank_of(number), number < 3 ? "n1" : "n2", 1, static_cast<int>(number % 3));
  for (std::size_t rank = 0; rank < 5; ++rank) {
    INFO(rank);
    CHECK_EQ(api.node_of(in_rank_order[rank]), rank < 3 ? "n1" : "n2");
  }
  SUBCASE("after a restart they are the same tasks, whatever is listed first, and whether their owner can be read") {
    api.run_all();
    SUBCASE("owners first") {}
    SUBCASE("pods first") { api.pods_first = true; }
    SUBCASE("without the right to read their owner") {
      api.workloads_.erase(Kind::kJobSet);
      api.cluster().denied(Kind::kJobSet);
    }
    api.restart();
    api.pass(200);
    CHECK(std::none_of(api.commands.begin(), api.commands.end(),
                       [](const Command& one) { return std::holds_alternative<CancelJob>(one); }));
    CHECK(api.deleted.empty());
    CHECK_EQ(api.jobs().size(), 1);
    for (std::uint32_t number = 0; number < 5; ++number) CHECK_EQ(api.exit_of(rank_of(number)), nullptr);
  }
  SUBCASE("when it is deleted, and its pods with it, its job is cancelled at once") {
    for (const char* name : in_rank_order) api.remove(api.uid_of(name));
    api.settle();
    api.commands.clear();
    api.cluster().observe(Kind::kJobSet, json(kJobSet), true, api.now());
    api.settle();
    REQUIRE_EQ(api.commands.size(), 1);
    CHECK_EQ(std::get<CancelJob>(api.commands[0]).job, JobId(1));
  }
}

TEST_CASE("the replicated jobs of a JobSet that starts them in order are a gang each") {
  OwnedPods api;
  boost::json::object ordered = json(kJobSet);
  ordered["spec"].as_object()["startupPolicy"] = json(R"({"startupPolicyOrder":"InOrder"})");
  api.owner(Kind::kJobSet, boost::json::serialize(ordered));
  api.pod("driver", 1, "", "", job_set_pod("driver", 0, 0));
  api.settle();
  REQUIRE_EQ(api.jobs().size(), 1);
  CHECK(api.groups_of(0) == Groups{{"driver", 1}});
  for (int job = 0; job < 2; ++job)
    for (int index = 0; index < 2; ++index)
      api.pod("w" + std::to_string(2 * job + index), 1, "", "", job_set_pod("workers", job, index));
  api.settle();
  REQUIRE_EQ(api.jobs().size(), 2);
  CHECK(api.groups_of(1) == Groups{{"workers", 4}});
}

TEST_CASE("each replica of a LeaderWorkerSet is a gang of the size that its pods say") {
  OwnedPods api;
  const auto pod = [&](int group, int worker) {
    api.pod("serve-" + std::to_string(group) + "-" + std::to_string(worker), 2, "", "",
            R"("labels":{"leaderworkerset.sigs.k8s.io/name":"serve","leaderworkerset.sigs.k8s.io/group-index":")" +
                std::to_string(group) + R"(","leaderworkerset.sigs.k8s.io/worker-index":")" + std::to_string(worker) +
                R"("},"annotations":{"leaderworkerset.sigs.k8s.io/size":"2"})");
  };
  SUBCASE("leader and workers together") {
    pod(0, 0);
    pod(1, 1);
    api.settle();
    CHECK(api.jobs().empty());
    pod(0, 1);
    api.settle();
    REQUIRE_EQ(api.jobs().size(), 1);
    CHECK_EQ(api.jobs()[0].spec.name, "serve-0");
    CHECK_EQ(api.jobs()[0].spec.job_class, JobClass::kInference);
    CHECK(api.groups_of(0) == Groups{{"leader", 1}, {"worker", 1}});
    pod(1, 0);
    api.settle();
    CHECK_EQ(api.jobs().size(), 2);
  }
  SUBCASE("the workers after the leader, where it says so") {
    api.owner(Kind::kLeaderWorkerSet,
              R"({"metadata":{"name":"serve","namespace":"team"},"spec":{"startupPolicy":"LeaderReady"}})");
    pod(0, 0);
    api.settle();
    CHECK_EQ(api.jobs().size(), 1);
    pod(0, 1);
    api.settle();
    CHECK_EQ(api.jobs().size(), 2);
  }
}

TEST_CASE("what a RayCluster adds to its least size are jobs of their own, also after a restart") {
  OwnedPods api;
  api.owner(Kind::kRayCluster,
            R"({"metadata":{"name":"ray","namespace":"team"},"spec":{"enableInTreeAutoscaling":true,
                "workerGroupSpecs":[{"groupName":"gpu","minReplicas":1,"replicas":1}]}})");
  const auto pod = [&](const std::string& name, const std::string& group) {
    api.pod(
        name, 1, "", "",
        R"("labels":{"ray.io/group":")" + group + R"(","ray.io/node-type":")" +
            (group == "headgroup" ? "head" : "worker") +
            R"("},"ownerReferences":[{"apiVersion":"ray.io/v1","kind":"RayCluster","name":"ray","uid":"R","controller":true}])");
    api.settle();
  };
  pod("w1", "gpu");
  CHECK(api.jobs().empty());
  pod("head", "headgroup");
  REQUIRE_EQ(api.jobs().size(), 1);
  CHECK(api.groups_of(0) == Groups{{"headgroup", 1}, {"gpu", 1}});
  api.start(rank_of(0), "n1", 1);
  api.start(rank_of(1), "n2", 1);
  api.run_all();
  api.settle();
  CHECK_EQ(api.node_of("head"), "n1");
  pod("w2", "gpu");
  REQUIRE_EQ(api.jobs().size(), 2);
  api.start(rank_of(0, 1, 2), "n1", 1, 1);
  api.run_all();
  api.settle();
  CHECK_EQ(api.node_of("w2"), "n1");
  pod("w3", "gpu");
  CHECK_EQ(api.jobs().size(), 3);
  api.restart();
  api.pass(40);
  CHECK_EQ(api.jobs_of_core_.size(), 3);
  CHECK(api.deleted.empty());
}

TEST_CASE("after a restart the pods of a Job are the same tasks, also where they are listed before it, or it is gone") {
  for (const bool orphans : {false, true}) {
    CAPTURE(orphans);
    OwnedPods api;
    api.owner(
        Kind::kJob,
        R"({"metadata":{"uid":"J","name":"train","namespace":"team"},"spec":{"parallelism":2,"completions":2,"completionMode":"Indexed"}})");
    for (const char* index : {"0", "1"}) {
      api.pod(
          std::string("t") + index, 1, "", "",
          R"("ownerReferences":[{"kind":"Job","name":"train","uid":"J","controller":true}],"annotations":{"batch.kubernetes.io/job-completion-index":")" +
              std::string(index) + "\"}");
    }
    api.settle();
    for (std::uint32_t index = 0; index < 2; ++index) api.start(rank_of(index), "n1", 1, static_cast<int>(index));
    api.run_all();
    api.settle();
    if (orphans) api.jobs_.clear();
    api.pods_first = true;
    api.restart();
    api.pass(200);
    CHECK(api.deleted.empty());
    CHECK_EQ(api.jobs().size(), 1);
    CHECK(std::none_of(api.commands.begin(), api.commands.end(),
                       [](const Command& one) { return std::holds_alternative<CancelJob>(one); }));
    for (std::uint32_t index = 0; index < 2; ++index) CHECK_EQ(api.exit_of(rank_of(index)), nullptr);
  }
}

TEST_CASE("a completion index that has succeeded needs no pod in the next attempt") {
  OwnedPods api;
  const std::string job =
      R"({"metadata":{"uid":"J","name":"train","namespace":"team"},"spec":{"parallelism":3,"completions":3,"completionMode":"Indexed"})";
  const auto pod = [&](const std::string& name, int index) {
    api.pod(
        name, 1, "", "",
        R"("ownerReferences":[{"kind":"Job","name":"train","uid":"J","controller":true}],"annotations":{"batch.kubernetes.io/job-completion-index":")" +
            std::to_string(index) + "\"}");
  };
  api.owner(Kind::kJob, job + "}");
  for (int index = 0; index < 3; ++index) pod("t" + std::to_string(index), index);
  api.settle();
  for (std::uint32_t index = 0; index < 3; ++index) api.start(rank_of(index), "n1", 1, static_cast<int>(index));
  api.run_all();
  api.phase(api.uid_of("t0"), "Succeeded");
  api.phase(api.uid_of("t2"), "Succeeded");
  api.phase(api.uid_of("t1"), "Failed", 3);
  api.settle();
  for (std::uint32_t index = 0; index < 3; ++index) api.perform(ForgetTask{rank_of(index), ""});
  for (std::uint32_t index = 0; index < 3; ++index) api.start(rank_of(index, 2), "n2", 1, static_cast<int>(index));
  CHECK_EQ(api.exit_of(rank_of(0, 2)), nullptr);  // its controller may still be about to say so
  api.owner(Kind::kJob, job + R"(,"status":{"completedIndexes":"0,2"}})");
  api.settle();
  for (std::uint32_t index : {0U, 2U}) {
    REQUIRE(api.exit_of(rank_of(index, 2)));
    CHECK_EQ(api.exit_of(rank_of(index, 2))->reason, ExitReason::kExited);
    CHECK_EQ(api.exit_of(rank_of(index, 2))->code, 0);
  }
  pod("t1b", 1);
  api.settle();
  CHECK_EQ(api.node_of("t1b"), "n2");
  CHECK_EQ(api.exit_of(rank_of(1, 2)), nullptr);
}

TEST_CASE("a namespace uses the priority classes that its annotation names, and the default one") {
  OwnedPods api;
  api.name_space("team", "research", "dev, training");
  api.pod("a", 1, R"("berth.dev/priority-class":"production")");
  api.pod("b", 1, R"("berth.dev/priority-class":"dev")");
  api.pod("c", 1);
  api.settle();
  CHECK_EQ(api.jobs().size(), 2);
  CHECK_NE(api.told("a").find("priority class 'production' is not one that namespace team may use: dev, training"),
           std::string::npos);
  api.name_space("team", "research", "");
  api.pod("d", 1, R"("berth.dev/priority-class":"dev")");
  api.settle();
  CHECK_NE(api.told("d").find("it has the default class alone"), std::string::npos);
  api.name_space("team", "research", "*");
  api.pass(61);
  CHECK_EQ(api.jobs().size(), 4);
}

TEST_CASE("the cluster's default priority class counts only where the namespace has it by name") {
  OwnedPods api;
  const std::string by_spec = R"("priorityClassName":"usual")";
  const auto class_of = [&](std::size_t job) { return api.jobs().at(job).spec.priority_class; };
  api.owner(Kind::kPriorityClass, R"({"metadata":{"name":"usual"},"value":100,"globalDefault":true})");
  api.owner(Kind::kPriorityClass, R"({"metadata":{"name":"dev"},"value":1,"globalDefault":false})");
  api.name_space("team", "research", "");
  api.pod("a", 1, "", by_spec);  // as the API server writes it
  api.settle();
  REQUIRE_EQ(api.jobs().size(), 1);
  CHECK_EQ(class_of(0), "");
  api.name_space("team", "research", "*");
  api.pod("b", 1, "", by_spec);
  api.pod("c", 1, "", R"("priorityClassName":"dev")");
  api.settle();
  REQUIRE_EQ(api.jobs().size(), 3);
  CHECK_EQ(class_of(1), "");
  CHECK_EQ(class_of(2), "dev");
  api.name_space("team", "research", "dev, usual");
  api.pod("d", 1, "", by_spec);
  api.settle();
  REQUIRE_EQ(api.jobs().size(), 4);
  CHECK_EQ(class_of(3), "usual");
  api.name_space("team", "research", "dev");
  api.pod("e", 1, R"("berth.dev/priority-class":"usual")");  // asked for by name
  api.settle();
  CHECK_NE(api.told("e").find("priority class 'usual' is not one that namespace team may use: dev"), std::string::npos);
  api.owner(Kind::kPriorityClass, R"({"metadata":{"name":"usual"},"value":100})");
  api.pod("f", 1, "", by_spec);
  api.settle();
  CHECK_NE(api.told("f").find("priority class 'usual'"), std::string::npos);
  CHECK_EQ(api.jobs().size(), 4);
}

}  // namespace berth::kube
