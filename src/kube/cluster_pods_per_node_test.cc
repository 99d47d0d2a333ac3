#include <doctest/doctest.h>

#include <algorithm>

#include "kube/api_stand_in.h"

namespace berth::kube {
namespace {

// A node that takes two pods.
struct SmallNode : ApiStandIn {
  SmallNode() {
    node("n1", 8);
    boost::json::object small = nodes_["n1"];
    small["status"].as_object()["allocatable"].as_object()["pods"] = "2";
    nodes_["n1"] = small;
    name_space("team", "research");
    list();
  }
  bool takes_more() const {
    const auto& taints = registered.at("n1").taints;
    return std::none_of(taints.begin(), taints.end(),
                        [](const Taint& taint) { return taint.key == "berth.dev/no-more-pods"; });
  }
  static TaskKey job(std::uint64_t id) { return {JobId(id), 1, 0, 1}; }
};

}  // namespace

TEST_CASE("a node that has as many pods as it takes gets no more, whoever has bound them") {
  SmallNode api;
  api.pod("a", 1);
  api.settle();
  api.start(SmallNode::job(1), "n1", 1);
  CHECK(api.takes_more());
  api.pod("foreign", 0, "", R"("nodeName":"n1")");
  api.settle();
  CHECK_FALSE(api.takes_more());
  api.phase(api.uid_of("foreign"), "Succeeded");
  api.settle();
  CHECK(api.takes_more());
}

TEST_CASE("of several that were planned onto a node at once, those that it does not take are not bound") {
  SmallNode api;
  for (const char* name : {"a", "b", "c"}) api.pod(name, 1);
  api.settle();
  for (std::uint64_t id : {1U, 2U, 3U}) api.start(SmallNode::job(id), "n1", 1, static_cast<int>(id));
  CHECK_EQ(api.node_of("b"), "n1");
  CHECK_EQ(api.node_of("c"), "");
  REQUIRE(api.exit_of(SmallNode::job(3)));
  CHECK_EQ(api.exit_of(SmallNode::job(3))->reason, ExitReason::kStartFailed);
  CHECK_EQ(api.exit_of(SmallNode::job(3))->message, "node n1 takes 2 pods, and has them");
  api.remove(api.uid_of("a"));
  api.settle();
  CHECK_FALSE(api.takes_more());  // it is avoided for a while
  api.pass(61);
  CHECK(api.takes_more());
}

}  // namespace berth::kube
