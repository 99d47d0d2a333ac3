#include <doctest/doctest.h>

#include <algorithm>

#include "kube/api_stand_in.h"

namespace berth::kube {
namespace {

constexpr const char* kSlice = "nvidia.com/mig-1g.10gb";

TaskKey device_task(std::uint64_t job, std::uint32_t number = 0) { return {JobId(job), 1, number, 1}; }

// Asks by an init container, whose request is the pod's where no container asks for more.
std::string asking(const std::string& resource, int count) {
  return R"("initContainers":[{"name":"i","resources":{"limits":{")" + resource + "\":" + std::to_string(count) +
         "}}}]";
}

// A node with two whole GPUs and three MIG instances.
struct Sliced : ApiStandIn {
  explicit Sliced(Options options = {}) : ApiStandIn(std::move(options)) {
    node("n1", 2);
    offer("n1", kSlice, 3);
    name_space("team", "q");
    list();
  }
  void offer(const std::string& name, const std::string& resource, int count) {
    nodes_.at(name)["status"].as_object()["allocatable"].as_object()[resource] = std::to_string(count);
    cluster().observe(Kind::kNode, nodes_.at(name), false, now());
  }
  void start_on(const TaskKey& key, const std::vector<std::string>& uuids) {
    StartTask one;
    one.key = key;
    one.node = "n1";
    one.gpu_uuids = uuids;
    start(one);
  }
  // How many devices of the model others use, or do not use.
  std::size_t count_of(const std::string& model, bool used = false) const {
    const auto& gpus = registered.at("n1").gpus;
    const auto& theirs = foreign.at("n1").gpus;
    return static_cast<std::size_t>(std::count_if(gpus.begin(), gpus.end(), [&](const Gpu& gpu) {
      return gpu.model == model && theirs.contains(gpu.uuid) == used;
    }));
  }
};

}  // namespace

TEST_CASE("MIG instances of a node are counted devices of a model that has the name of their resource") {
  Sliced api;
  CHECK_EQ(api.count_of("H100"), 2);
  CHECK_EQ(api.count_of(kSlice), 3);
  CHECK_EQ(api.registered.at("n1").gpus[2].uuid, "node-n1:nvidia.com/mig-1g.10gb:0");
  api.pod("a", 0, "", asking(kSlice, 2));
  api.pod("b", 1);
  api.settle();
  REQUIRE_EQ(api.jobs().size(), 2);
  const TaskRequest& slices = api.jobs()[0].spec.groups[0].request;
  CHECK_EQ(slices.gpus, 2);
  CHECK(slices.gpu_models == std::vector<std::string>{kSlice});
  CHECK(api.jobs()[1].spec.groups[0].request.gpu_models.empty());
}

TEST_CASE("GPUs that are shared in time are counted, and so is what other vendors offer when they are named") {
  Sliced api({.devices = {"amd.com/gpu"}});
  api.offer("n1", "nvidia.com/gpu.shared", 4);
  api.offer("n1", "amd.com/gpu", 1);
  api.offer("n1", "rdma/hca", 2);
  api.pod("a", 0, "", asking("nvidia.com/gpu.shared", 1));
  api.pod("b", 0, "", asking("amd.com/gpu", 1));
  api.pod("c", 0, "", asking("habana.ai/gaudi", 1));
  api.settle();
  CHECK_EQ(api.count_of("nvidia.com/gpu.shared"), 4);
  CHECK_EQ(api.count_of("amd.com/gpu"), 1);
  CHECK_EQ(api.registered.at("n1").gpus.size(), 10);
  CHECK_EQ(api.jobs().size(), 2);
  CHECK(api.told("c").find("resource habana.ai/gaudi is not supported") != std::string::npos);
  Sliced plain;
  plain.pod("b", 0, "", asking("amd.com/gpu", 1));
  plain.settle();
  CHECK(plain.told("b").find("resource amd.com/gpu is not supported") != std::string::npos);
}

TEST_CASE("network devices and huge pages of a node are countables, which pods ask for beside GPUs") {
  Sliced api;
  api.offer("n1", "rdma/hca", 4);
  api.offer("n1", "vpc.amazonaws.com/efa", 32);
  api.offer("n1", "pods", 110);
  api.nodes_.at("n1")["status"].as_object()["allocatable"].as_object()["hugepages-2Mi"] = "1Gi";
  api.nodes_.at("n1")["status"].as_object()["allocatable"].as_object()["example.com/broken"] = "many";
  api.cluster().observe(Kind::kNode, api.nodes_.at("n1"), false, api.now());
  api.settle();
  CHECK_EQ(api.registered.at("n1").countables,
           Countables{{"hugepages-2Mi", 1024}, {"pods", 110}, {"rdma/hca", 4}, {"vpc.amazonaws.com/efa", 32}});
  api.pod("a", 0, "",
          R"("initContainers":[{"name":"i","resources":{"limits":)"
          R"({"nvidia.com/gpu":"2","rdma/hca":"1","hugepages-2Mi":"512Mi"}}}])");
  api.settle();
  REQUIRE_EQ(api.jobs().size(), 1);
  CHECK_EQ(api.jobs()[0].spec.groups[0].request.gpus, 2);
  CHECK_EQ(api.jobs()[0].spec.groups[0].request.countables, Countables{{"hugepages-2Mi", 512}, {"rdma/hca", 1}});
  api.pod("foreign", 0, "", R"("nodeName":"n1",)" + asking("rdma/hca", 3));
  api.settle();
  CHECK_EQ(api.foreign.at("n1").countables, Countables{{"pods", 1}, {"rdma/hca", 3}});
}

TEST_CASE("a pod that asks for devices of two resources is refused by name") {
  Sliced api;
  api.pod("a", 1, "", asking(kSlice, 1));
  api.pod("b", 0, "", asking(kSlice, 17));
  api.settle();
  CHECK(api.jobs().empty());
  CHECK(api.told("a").find("nvidia.com/gpu beside nvidia.com/mig-1g.10gb in one pod") != std::string::npos);
  CHECK(api.told("b").find("nvidia.com/mig-1g.10gb: 17 in one pod, over 16") != std::string::npos);
}

TEST_CASE("foreign pods take devices of the resource that they use, and no other") {
  Sliced api;
  api.pod("a", 0, "", R"("nodeName":"n1",)" + asking(kSlice, 2));
  api.settle();
  CHECK_EQ(api.count_of(kSlice), 1);
  CHECK_EQ(api.count_of(kSlice, true), 2);
  CHECK_EQ(api.count_of("H100"), 2);
  api.pod("b", 2, "", R"("nodeName":"n1",)" + asking("nvidia.com/gpu.shared", 1));
  api.settle();
  CHECK_EQ(api.count_of("H100"), 0);
  CHECK_EQ(api.count_of(kSlice), 1);
  api.remove(api.uid_of("a"));
  api.remove(api.uid_of("b"));
  api.settle();
  CHECK_EQ(api.count_of("H100"), 2);
  CHECK_EQ(api.count_of(kSlice), 3);
}

TEST_CASE("each pod of a gang gets devices of its own resource, also after a restart") {
  Sliced api;
  const std::string gang = R"("berth.dev/group":"g","berth.dev/group-size":"2")";
  api.pod("slice", 0, gang, asking(kSlice, 1));
  api.pod("whole", 1, gang);
  api.settle();
  REQUIRE_EQ(api.jobs().size(), 1);
  REQUIRE_EQ(api.jobs()[0].spec.groups.size(), 2);
  api.start_on(device_task(1, 0), {"node-n1:1"});
  api.start_on(device_task(1, 1), {"node-n1:nvidia.com/mig-1g.10gb:2"});
  const auto key_of = [&](const char* pod) {
    return text_at(api.pods_.at(api.uid_of(pod)), {"metadata", "annotations", "berth.dev/task"});
  };
  CHECK_EQ(key_of("whole"), "1/1/0/1");
  CHECK_EQ(key_of("slice"), "1/1/1/1");
  api.run_all();
  api.restart();
  CHECK(api.exit_of(device_task(1, 0)) == nullptr);
  CHECK(api.exit_of(device_task(1, 1)) == nullptr);
  CHECK_EQ(api.count_of("H100") + api.count_of(kSlice), 5);
}

TEST_CASE("of more devices than berth uses of a node, each resource has some, and it is told") {
  Sliced api;
  api.offer("n1", kSlice, 56);
  api.offer("n1", "nvidia.com/mig-3g.40gb", 8);
  api.settle();
  CHECK_EQ(api.registered.at("n1").gpus.size(), 16);
  CHECK_EQ(api.count_of("H100"), 2);
  CHECK_EQ(api.count_of(kSlice), 7);
  CHECK_EQ(api.count_of("nvidia.com/mig-3g.40gb"), 7);
  api.pod("foreign", 0, "", R"("nodeName":"n1",)" + asking(kSlice, 16));
  api.settle();
  CHECK_EQ(api.count_of(kSlice), 7);  // it has them of those that berth does not use
  const auto warnings = api.cluster().warnings();
  CHECK(std::any_of(warnings.begin(), warnings.end(), [](const std::string& text) {
    return text.find("it has 66 GPUs and parts of GPUs; berth uses 16") != std::string::npos;
  }));
}

}  // namespace berth::kube
