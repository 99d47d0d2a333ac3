#include <doctest/doctest.h>

#include <algorithm>

#include "kube/api_stand_in.h"

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
  std::string with_label(const std::string& key) const {
    std::string names;
    for (const auto& [name, spec] : registered) {
      if (std::find(spec.labels.begin(), spec.labels.end(), std::pair{key, std::string("yes")}) != spec.labels.end())
        names += name;
    }
    return names;
  }
  std::string label_of_last_job() const {
    const Labels& selector = jobs().back().spec.groups[0].node_selector;
    return selector.size() == 1 && selector[0].second == "yes" ? selector[0].first : "";
  }
};

}  // namespace

TEST_CASE("a node affinity that labels cannot say is a label that berth gives the nodes it allows") {
  Zones api;
  api.pod("a", 1, "", zone_in(R"("z1","z3")"));
  api.settle();
  REQUIRE_EQ(api.jobs().size(), 1);
  const std::string label = api.label_of_last_job();
  CHECK(label.starts_with(kAffinityLabel));
  CHECK_EQ(api.with_label(label), "n1n3");
  api.zone("n4", "z1");
  api.zone("n3", "z9");
  api.settle();
  CHECK_EQ(api.with_label(label), "n1n4");
  api.cluster().waits(JobId(1), "no node has the label " + label, api.now());
  api.settle();
  CHECK(api.told("a").find("zone in (z1, z3)") != std::string::npos);
  api.start(first_task(1), "n4", 1);
  CHECK_EQ(api.node_of("a"), "n4");
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
    REQUIRE_FALSE(api.label_of_last_job().empty());
    CHECK_EQ(api.with_label(api.label_of_last_job()), nodes);
  }
}

TEST_CASE("an affinity with one value for each label is a selector; that of a DaemonSet names its node") {
  Zones api;
  api.pod("a", 1, "", R"("nodeSelector":{"x":"y"},)" + zone_in(R"("z1")"));
  api.pod("b", 1, "", affinity_to(R"([{"matchFields":[{"key":"metadata.name","operator":"In","values":["n2"]}]}])"));
  api.settle();
  REQUIRE_EQ(api.jobs().size(), 2);
  CHECK(api.jobs()[0].spec.groups[0].node_selector == Labels{{"x", "y"}, {"zone", "z1"}});
  CHECK(api.jobs()[1].spec.groups[0].node_selector == Labels{{"berth.dev/node", "n2"}});
  const Labels& labels = api.registered.at("n2").labels;
  CHECK(std::find(labels.begin(), labels.end(), std::pair<std::string, std::string>{"berth.dev/node", "n2"}) !=
        labels.end());
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

TEST_CASE("after a restart the nodes have the labels of running and waiting pods again") {
  Zones api;
  api.pod("a", 1, "", zone_in(R"("z1","z2")"));
  api.settle();
  const std::string running = api.label_of_last_job();
  api.start(first_task(1), "n1", 1);
  api.run_all();
  api.pod("b", 1, "", zone_in(R"("z2","z3")"));
  api.settle();
  const std::string waiting = api.label_of_last_job();
  api.registered.clear();
  api.restart();
  CHECK_EQ(api.with_label(running), "n1n2");
  CHECK_EQ(api.with_label(waiting), "n2n3");
  CHECK_EQ(api.jobs().size(), 2);
}

TEST_CASE("a namespace has 32 affinities an hour, and waits for more without harm to others") {
  Zones api;
  const auto number = [](int value) { return std::to_string(value); };
  for (int i = 0; i < 33; ++i) {
    api.pod("p" + number(i), 1, "", zone_in("\"z1\",\"other" + number(i) + "\""));
    api.settle();
  }
  CHECK_EQ(api.jobs().size(), 32);
  CHECK(api.told("p32").find("32 different required node affinities") != std::string::npos);
  for (int i = 0; i < 32; ++i) api.remove(api.uid_of("p" + number(i)));
  for (std::size_t job = 1; job <= 32; ++job) api.cluster().finished(JobId(job), true, api.now());
  api.pass(3'500);
  CHECK_EQ(api.jobs().size(), 32);
  api.pass(300);
  CHECK_EQ(api.jobs().size(), 33);
}

}  // namespace berth::kube
