#include <doctest/doctest.h>

#include <algorithm>

#include "kube/api_stand_in.h"

namespace berth::kube {
namespace {

constexpr const char* kDriver = "csi.example.com";

std::string mounts(const std::vector<std::string>& claims) {
  std::string list;
  for (const std::string& claim : claims) {
    list += (list.empty() ? "" : ",") + (R"({"name":"v-)" + claim) + R"(","persistentVolumeClaim":{"claimName":")" +
            claim + R"("}})";
  }
  return R"("volumes":[)" + list + "]";
}

TaskKey attaching_task(std::uint64_t job, std::uint32_t number = 0) { return {JobId(job), 1, number, 1}; }

// Two nodes; the first attaches two volumes, the second as many as there are.
struct Attaching : ApiStandIn {
  Attaching() {
    node("n1", 8);
    node("n2", 8);
    name_space("team", "q");
    limit("n1", 2);
    for (const std::string name : {"a", "b", "c", "d"}) {
      storage(Kind::kPersistentVolume, "pv-" + name,
              std::string(R"("spec":{"csi":{"driver":")") + kDriver + R"(","volumeHandle":")" + name + R"("}})");
      storage(Kind::kPersistentVolumeClaim, name,
              R"("spec":{"volumeName":"pv-)" + name + R"("},"status":{"phase":"Bound"})");
    }
    list();
  }
  void limit(const std::string& name, int count) {
    storage(Kind::kCsiNode, name,
            std::string(R"("spec":{"drivers":[{"name":")") + kDriver + R"(","allocatable":{"count":)" +
                std::to_string(count) + "}}]}");
  }
  std::string nodes_that_attach(std::int64_t count) const {
    std::string names;
    const std::pair<std::string, std::string> label{label_of_attaching(kDriver, count), "yes"};
    for (const auto& [name, spec] : registered) {
      if (std::find(spec.labels.begin(), spec.labels.end(), label) != spec.labels.end()) names += name;
    }
    return names;
  }
  void settled_pod(const std::string& name, const std::vector<std::string>& claims, const std::string& more = "") {
    pod(name, 1, "", more + mounts(claims));
    settle();
  }
};

}  // namespace

TEST_CASE("a pod with volumes of a limited driver asks for a node that can attach them") {
  Attaching api;
  api.settled_pod("p", {"a"});
  REQUIRE_EQ(api.jobs().size(), 1);
  CHECK(api.jobs()[0].spec.groups[0].node_selector == Labels{{label_of_attaching(kDriver, 1), "yes"}});
  CHECK_EQ(api.nodes_that_attach(1), "n1n2");
  api.start(attaching_task(1), "n1", 1);
  CHECK_EQ(api.node_of("p"), "n1");
  CHECK_EQ(api.nodes_that_attach(1), "n1n2");
  api.settled_pod("foreign", {"b"}, R"("nodeName":"n1",)");
  CHECK_EQ(api.nodes_that_attach(1), "n2");
  api.settled_pod("q", {"c"});
  api.cluster().waits(JobId(2), "no node has " + label_of_attaching(kDriver, 1), api.now());
  api.settle();
  CHECK(api.told("q").find("can attach 1 more volumes of driver csi.example.com") != std::string::npos);
  api.remove(api.uid_of("foreign"));
  api.settle();
  CHECK_EQ(api.nodes_that_attach(1), "n1n2");
}

TEST_CASE("a volume that several pods of a node use is attached once") {
  Attaching api;
  api.settled_pod("p", {"a"}, R"("nodeName":"n1",)");
  api.settled_pod("q", {"a"}, R"("nodeName":"n1",)");
  api.settled_pod("r", {"b"});
  CHECK_EQ(api.nodes_that_attach(1), "n1n2");
}

TEST_CASE("a start that would be one volume too many fails, and its node is avoided for a minute") {
  Attaching api;
  api.settled_pod("p", {"a", "b", "c"});
  REQUIRE_EQ(api.jobs().size(), 1);
  CHECK_EQ(api.nodes_that_attach(2), "n1n2");  // three are asked for as two
  api.start(attaching_task(1), "n1", 1);
  CHECK_EQ(api.node_of("p"), "");
  REQUIRE(api.exit_of(attaching_task(1)));
  CHECK_EQ(api.exit_of(attaching_task(1))->message, "node n1 attaches 2 volumes of driver csi.example.com, and has 0");
  CHECK_EQ(api.nodes_that_attach(2), "n2");
  api.pass(61);
  CHECK_EQ(api.nodes_that_attach(2), "n1n2");
}

TEST_CASE("limits that change, and drivers without one") {
  Attaching api;
  api.settled_pod("p", {"a"});
  api.limit("n1", 0);
  api.limit("n2", 1);
  api.settle();
  CHECK_EQ(api.nodes_that_attach(1), "n2");
  api.remove_storage(Kind::kCsiNode, "n1");
  api.settle();
  CHECK_EQ(api.nodes_that_attach(1), "n1n2");
  api.storage(Kind::kPersistentVolume, "pv-d", R"("spec":{"csi":{"driver":"other.example.com"}})");
  api.settled_pod("q", {"d"});
  CHECK(api.jobs().back().spec.groups[0].node_selector.empty());
}

TEST_CASE("after a restart the nodes have the same labels") {
  Attaching api;
  api.settled_pod("p", {"a", "b"});
  api.start(attaching_task(1), "n1", 1);
  api.run_all();
  api.settled_pod("q", {"c"});
  CHECK_EQ(api.nodes_that_attach(1), "n2");
  api.registered.clear();
  api.restart();
  CHECK_EQ(api.nodes_that_attach(1), "n2");
  CHECK_EQ(api.jobs().size(), 2);
}

}  // namespace berth::kube
