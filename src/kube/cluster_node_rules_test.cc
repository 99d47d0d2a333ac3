#include <doctest/doctest.h>

#include <algorithm>
#include <boost/json/parse.hpp>

#include "kube/api_stand_in.h"
#include "model/toleration.h"
#include "support/kubernetes_world.h"

namespace berth::kube {
namespace {

TaskKey first_task(std::uint64_t job) { return {JobId(job), 1, 0, 1}; }

std::string affinity_to(const std::string& terms) {
  return R"("affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":)" +
         terms + "}}}";
}

std::string zone_in(const std::string& values) {
  return affinity_to(R"([{"matchExpressions":[{"key":"zone","operator":"In","values":[)" + values + "]}]}]");
}

// A node in each of three zones, and one in none.
struct Zones : ApiStandIn {
  explicit Zones(Options options = {}) : ApiStandIn(std::move(options)) {
    for (const std::string number : {"1", "2", "3"}) {
      node("n" + number, 8);
      zone("n" + number, "z" + number);
    }
    node("n4", 8);
    name_space("team", "q");
    list();
  }
  void zone(const std::string& name, const std::string& zone) {
    nodes_.at(name)["metadata"].as_object()["labels"].as_object()["zone"] = zone;
    cluster().observe(Kind::kNode, nodes_.at(name), false, now());
  }
  // The names of the nodes that the last job may use, by their own labels.
  std::string allowed() const {
    std::string names;
    for (const auto& [name, spec] : registered) {
      if (sched_allows(spec)) names += name;
    }
    return names;
  }
  bool sched_allows(const NodeSpec& spec) const {
    const auto& rules = jobs().back().spec.groups[0].node_rules;
    return std::all_of(rules.begin(), rules.end(),
                       [&](const NodeRule& rule) { return allows(rule, spec.name, spec.labels); });
  }
};

}  // namespace

TEST_CASE("a required node affinity goes to the core as it is, and nodes have the labels of their own alone") {
  Zones api;
  const auto before = api.registered;
  api.pod("a", 1, "", zone_in(R"("z1","z3")"));
  api.settle();
  REQUIRE_EQ(api.jobs().size(), 1);
  const TaskGroup& group = api.jobs().back().spec.groups[0];
  REQUIRE_EQ(group.node_rules.size(), 1);
  CHECK_EQ(text_of(group.node_rules[0]), "zone in (z1, z3)");
  CHECK(group.node_selector.empty());
  CHECK_EQ(api.allowed(), "n1n3");
  CHECK(api.registered == before);
  api.zone("n4", "z1");
  api.zone("n3", "z9");
  api.settle();
  CHECK_EQ(api.allowed(), "n1n4");
  api.start(first_task(1), "n4", 1);
  CHECK_EQ(api.node_of("a"), "n4");
}

TEST_CASE("a pod with a new affinity registers no node again") {
  Zones api;
  api.settle();
  const auto registrations = [&] {
    return std::count_if(api.commands.begin(), api.commands.end(),
                         [](const Command& command) { return std::holds_alternative<RegisterNode>(command); });
  };
  const auto before = registrations();
  for (int i = 0; i < 40; ++i) {
    const std::string number = std::to_string(i);
    api.pod("p" + number, 1, "", zone_in("\"z1\",\"other" + number + "\""));
    api.settle();
  }
  CHECK_EQ(api.jobs().size(), 40);
  CHECK_EQ(registrations(), before);
}

TEST_CASE("a node without the label is not in, and is elsewhere; several terms are either") {
  const std::pair<const char*, const char*> rows[] = {
      {R"([{"matchExpressions":[{"key":"zone","operator":"NotIn","values":["z1","z2"]}]}])", "n3n4"},
      {R"([{"matchExpressions":[{"key":"zone","operator":"Exists"}]}])", "n1n2n3"},
      {R"([{"matchExpressions":[{"key":"zone","operator":"DoesNotExist"}]}])", "n4"},
      {R"([{"matchExpressions":[{"key":"zone","operator":"In","values":["z2"]}]},)"
       R"({"matchFields":[{"key":"metadata.name","operator":"In","values":["n4"]}]}])",
       "n2n4"},
      {R"([{"matchExpressions":[{"key":"zone","operator":"Gt","values":["1"]}]}])", ""},
      {"[]", ""},
  };
  for (const auto& [terms, nodes] : rows) {
    CAPTURE(terms);
    Zones api;
    api.pod("a", 1, "", affinity_to(terms));
    api.settle();
    REQUIRE_EQ(api.jobs().size(), 1);
    REQUIRE_FALSE(api.jobs()[0].spec.groups[0].node_rules.empty());
    CHECK_EQ(api.allowed(), nodes);
  }
}

TEST_CASE("a selector and an affinity are both asked for; that of a DaemonSet names its node") {
  Zones api;
  api.pod("a", 1, "", R"("nodeSelector":{"x":"y"},)" + zone_in(R"("z1")"));
  api.pod("b", 1, "", affinity_to(R"([{"matchFields":[{"key":"metadata.name","operator":"In","values":["n2"]}]}])"));
  api.settle();
  REQUIRE_EQ(api.jobs().size(), 2);
  CHECK(api.jobs()[0].spec.groups[0].node_selector == Labels{{"x", "y"}});
  CHECK_EQ(text_of(api.jobs()[0].spec.groups[0].node_rules.at(0)), "zone in (z1)");
  CHECK_EQ(api.allowed(), "n2");
}

TEST_CASE("taints come with their values and effects, and tolerations with their operators") {
  Zones api;
  api.node(
      "n5", 8,
      R"({"taints":[{"key":"team","value":"a","effect":"NoSchedule"},{"key":"team","value":"a","effect":"NoExecute"},)"
      R"({"key":"soft","effect":"PreferNoSchedule"}]})");
  api.settle();
  CHECK(api.registered.at("n5").taints ==
        std::vector<Taint>{{"team", "a", TaintEffect::kNoSchedule}, {"team", "a", TaintEffect::kNoExecute}});
  api.pod("a", 1, "",
          R"("tolerations":[{"key":"team","operator":"Equal","value":"b","effect":"NoSchedule"},)"
          R"({"key":"gpu","operator":"Exists"},{"operator":"Exists","effect":"NoExecute"},{"key":"plain"},)"
          R"({"key":"soft","operator":"Exists","effect":"PreferNoSchedule"},{"value":"no-key"}])");
  api.pod("b", 1, "", R"("tolerations":[{"operator":"Exists"}])");
  api.settle();
  REQUIRE_EQ(api.jobs().size(), 2);
  CHECK_EQ(api.jobs()[0].spec.groups[0].tolerations,
           std::vector<std::string>{"*:NoExecute", "gpu", "plain=", "team=b:NoSchedule"});
  CHECK_EQ(api.jobs()[1].spec.groups[0].tolerations, std::vector<std::string>{"*"});
}

TEST_CASE("a toleration of any value holds for a taint on a node that joins after the pod's job") {
  Zones api;
  api.pod("a", 1, "", R"("tolerations":[{"key":"nvidia.com/gpu","operator":"Exists","effect":"NoSchedule"}])");
  api.settle();
  REQUIRE_EQ(api.jobs().size(), 1);
  api.node("late", 8, R"({"taints":[{"key":"nvidia.com/gpu","value":"present","effect":"NoSchedule"}]})");
  api.settle();
  CHECK(tolerates_all(api.jobs()[0].spec.groups[0].tolerations, api.registered.at("late").taints));
}

TEST_CASE("a pod that was made after its job does not get a node that its affinity excludes") {
  Zones api;
  api.pod("a", 1, R"("berth.dev/group":"g","berth.dev/group-size":"1")", zone_in(R"("z1","z2")"));
  api.settle();
  api.remove(api.uid_of("a"));
  api.pod("b", 1, R"("berth.dev/group":"g","berth.dev/group-size":"1")", zone_in(R"("z2","z3")"));
  api.settle();
  api.start(first_task(1), "n1", 1);
  CHECK_EQ(api.node_of("b"), "");
}

namespace {

boost::json::object with_spec(boost::json::object object, const std::string& members) {
  const boost::json::value read = boost::json::parse("{" + members + "}");
  for (const auto& [key, value] : read.as_object()) object["spec"].as_object()[key] = value;
  return object;
}

// A fleet with the core behind it. Its pods ask for one GPU.
struct Fleet : KubernetesWorld {
  Fleet() { server.add_namespace("team", "research/nlp, ads"); }
  void node(const std::string& name, const std::string& taints) {
    server.put(Kind::kNode, with_spec(StandInServer::node(name, 8), R"("taints":[)" + taints + "]"));
    settle();
  }
  void pod(const std::string& name, const std::string& tolerations) {
    server.put(Kind::kPod, with_spec(StandInServer::pod_of("team", name, 1), R"("tolerations":[)" + tolerations + "]"));
    settle();
  }
  std::string node_of(const std::string& pod) { return StandInServer::node_of(server.pod("team/" + pod)); }
};

}  // namespace

TEST_CASE("with the core: a pod that tolerates a key starts on the first node that comes with such a taint") {
  Fleet world;
  world.node("n0", R"({"key":"other","effect":"NoSchedule"})");
  world.pod("a", R"({"key":"nvidia.com/gpu","operator":"Exists","effect":"NoSchedule"})");
  world.pass(30);
  CHECK_EQ(world.node_of("a"), "");
  world.node("n1", R"({"key":"nvidia.com/gpu","value":"present","effect":"NoSchedule"})");
  world.pass(5);
  CHECK_EQ(world.node_of("a"), "n1");
  for (const std::string& error : world.errors) FAIL_CHECK(error);
}

TEST_CASE("with the core: a toleration of one effect does not open a node whose taint has the other") {
  Fleet world;
  world.node("n0", R"({"key":"x","effect":"NoExecute"})");
  world.pod("schedule", R"({"key":"x","operator":"Exists","effect":"NoSchedule"})");
  world.pass(30);
  CHECK_EQ(world.node_of("schedule"), "");
  world.node("n1", R"({"key":"y","effect":"NoSchedule"})");
  world.pod("execute", R"({"key":"y","operator":"Exists","effect":"NoExecute"})");
  world.pass(30);
  CHECK_EQ(world.node_of("execute"), "");
  world.pod("both", R"({"key":"x","operator":"Exists"})");
  world.pass(5);
  CHECK_EQ(world.node_of("both"), "n0");
  world.node("n2", R"({"key":"x","effect":"NoSchedule"},{"key":"y","effect":"NoExecute"})");
  world.pass(5);
  CHECK_EQ(world.node_of("schedule"), "");  // the other taint of the node keeps it away
  for (const std::string& error : world.errors) FAIL_CHECK(error);
}

}  // namespace berth::kube
