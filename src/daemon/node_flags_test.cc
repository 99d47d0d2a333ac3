#include "daemon/node_flags.h"

#include <doctest/doctest.h>

namespace berth::daemon {
namespace {

using Words = std::vector<std::string>;

NodeSpec machine() {
  NodeSpec node;
  node.name = "n1";
  node.labels = {{"berth.boot", "1"}};
  return node;
}

std::string refused(const NodeFlags& flags) {
  NodeSpec node = machine();
  const auto put = put_node_flags(flags, node);
  REQUIRE_FALSE(put);
  CHECK(put.error().code == ErrorCode::kInvalid);
  return put.error().message;
}

std::string refused_label(const std::string& label) { return refused({{}, {}, {"zone=east", label}, {}}); }
std::string refused_taint(const std::string& taint) { return refused({{}, {}, {}, {"spot", taint}}); }

ClusterConfig with(Words levels, const Words& pools) {
  ClusterConfig config;
  config.topology_levels = std::move(levels);
  for (const std::string& name : pools) config.pools.push_back({name, {}});
  return config;
}

NodeSpec placed(const std::string& pool, Words topology) {
  NodeSpec node = machine();
  node.pool = pool;
  node.topology = std::move(topology);
  return node;
}

TEST_CASE("node flags: they say the node's pool, its place, its labels by key and its taints in their order") {
  NodeSpec node = machine();
  REQUIRE(put_node_flags({"big", "b1/r1", {"zone=east", "disk=", "arch=a=b"}, {"spot", "old"}}, node));
  CHECK(node.pool == "big");
  CHECK(node.topology == Words{"b1", "r1"});
  CHECK(node.labels == Labels{{"arch", "a=b"}, {"berth.boot", "1"}, {"disk", ""}, {"zone", "east"}});
  CHECK(node.taints == std::vector<Taint>{{"spot", ""}, {"old", ""}});
}

TEST_CASE("node flags: without any the node stays as the machine was found") {
  NodeSpec node = machine();
  CHECK_FALSE(NodeFlags().any());
  REQUIRE(put_node_flags({}, node));
  CHECK(node == machine());
}

TEST_CASE("node flags: a label is KEY=VALUE, stands once and is not one of berth's own") {
  for (const char* label : {"zone", "=east", ""}) {
    CAPTURE(label);
    CHECK(refused_label(label) == "--node-label: '" + std::string(label) + "' is not KEY=VALUE");
  }
  CHECK(refused_label("zone=west") == "--node-label: 'zone' is given twice");
  CHECK(refused_label("berth.boot=2") == "--node-label: 'berth.boot': labels that begin with 'berth.' are berth's own");
  CHECK(refused_label("a=1,b=2") == "--node-label: 'a=1,b=2' has a comma; give the flag once for each");
}

TEST_CASE("node flags: a taint is given by its key alone, once") {
  for (const char* taint : {"a=b", "a:NoSchedule", ""}) {
    CAPTURE(taint);
    CHECK(refused_taint(taint).find("is not the key of a taint") != std::string::npos);
  }
  CHECK(refused_taint("spot") == "--node-taint: 'spot' is given twice");
  CHECK(refused_taint("a,b").find("has a comma") != std::string::npos);
}

TEST_CASE("node flags: what cannot be shown is refused and not shown") {
  CHECK(refused_label("a=\x1b[2J") == "--node-label contains control characters");
  CHECK(refused_taint("\xff") == "--node-taint is not valid UTF-8");
  CHECK(refused_taint(std::string(254, 'x')) == "--node-taint is longer than 253 bytes");
}

TEST_CASE("node flags: pools and domains have names") {
  for (const char* pool : {"", "a b", "-a", "a/b"}) {
    CAPTURE(pool);
    CHECK(refused({pool, {}, {}, {}}).find("--node-pool: this is not a name") == 0);
  }
  for (const char* at : {"", "/", "b1/", "/r1", "b1//r1", "b1/r 1"}) {
    CAPTURE(at);
    CHECK(refused({{}, at, {}, {}}).find("--node-at: give a name for each level") == 0);
  }
}

TEST_CASE("node flags: a place has no more names than there are levels") {
  const ClusterConfig two = with({"block", "rack"}, {"default"});
  CHECK(check_place(placed("default", {"b1", "r1"}), two));
  CHECK(check_place(placed("default", {"b1"}), two));
  CHECK(check_place(placed("default", {"b1", "r1", "x"}), two).error().message ==
        "--node-at: 'b1/r1/x' has more names than the topology of the configuration has levels: block/rack");
  CHECK(check_place(placed("default", {"b1"}), with({}, {"default"})).error().message ==
        "--node-at: 'b1' is no place: the configuration has no topology");
}

TEST_CASE("node flags: what the configuration in force does not know is told") {
  CHECK(unknown_to(with({"rack"}, {"default", "big"}), placed("big", {"r1"})).empty());
  CHECK(unknown_to(with({}, {}), placed("default", {})).empty());
  CHECK(unknown_to(with({"rack"}, {"default", "big"}), placed("bgi", {"r1", "x"})) ==
        Words{"--node-pool: the configuration has no pool 'bgi', only default, big: node n1 is open to every queue",
              "--node-at: 'r1/x' has more names than the topology of the configuration has levels: rack"});
  CHECK(unknown_to(with({}, {"big"}), placed("default", {})).size() == 1);
}

}  // namespace
}  // namespace berth::daemon
