#include "kube/pod_affinity.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "kube/api_stand_in.h"

namespace berth::kube {
namespace {

PodTerms terms_in(const std::string& kind, const std::string& terms, const std::string& labels = R"("app":"web")") {
  return read_pod_terms(ApiStandIn::json(R"({"metadata":{"namespace":"team","labels":{)" + labels +
                                         R"(}},"spec":{"affinity":{")" + kind +
                                         R"(":{"requiredDuringSchedulingIgnoredDuringExecution":)" + terms + "}}}}"));
}

std::string apart_from(const std::string& selector, const std::string& key = "kubernetes.io/hostname") {
  return R"("affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":")" + key +
         R"(","labelSelector":)" + selector + "}]}}";
}

const std::pair<std::string, std::string> kTeam{"berth.dev/namespace", "team"};

}  // namespace

TEST_CASE("a term means pods of its namespaces whose labels are equal; of several values any is enough to keep away") {
  struct Row {
    const char* term;
    std::vector<Labels> means;
  };
  const Row rows[] = {
      {R"({"labelSelector":{"matchLabels":{"app":"web","tier":"1"}}})", {{{"app", "web"}, kTeam, {"tier", "1"}}}},
      {R"({"labelSelector":{}})", {{kTeam}}},
      {R"({})", {}},
      {R"({"labelSelector":{"matchExpressions":[{"key":"app","operator":"In","values":["a","b"]}]}})",
       {{{"app", "a"}, kTeam}, {{"app", "b"}, kTeam}}},
      {R"({"labelSelector":{"matchLabels":{"app":"a"}},"namespaces":["x","y"]})",
       {{{"app", "a"}, {"berth.dev/namespace", "x"}}, {{"app", "a"}, {"berth.dev/namespace", "y"}}}},
      {R"({"labelSelector":{"matchLabels":{"app":"a"}},"namespaceSelector":{}})", {{{"app", "a"}}}},
      {R"({"labelSelector":{"matchLabels":{"app":"a"},"matchExpressions":[{"key":"app","operator":"In","values":["b"]}]}})",
       {}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.term);
    const PodTerms read = terms_in("podAntiAffinity", "[" + std::string(row.term) + "]");
    CHECK_EQ(read.problem, "");
    std::vector<Labels> means;
    for (const PodTerm& term : read.apart) means.push_back(term.labels);
    CHECK(means == row.means);
  }
  CHECK(terms_in("podAffinity", R"([{"labelSelector":{"matchLabels":{"app":"a"}}}])").near.size() == 1);
  CHECK(terms_in("podAffinity", "[]").labels == Labels{{"app", "web"}, kTeam});
}

TEST_CASE("a term that labels which are equal cannot say is named") {
  const std::pair<const char*, const char*> rows[] = {
      {R"([{"labelSelector":{"matchExpressions":[{"key":"a","operator":"NotIn","values":["b"]}]}}])",
       "the operator NotIn for a"},
      {R"([{"labelSelector":{"matchLabels":{"a":"b"}},"namespaceSelector":{"matchLabels":{"x":"y"}}}])",
       "a namespaceSelector other than {}"},
      {R"([{"labelSelector":{"matchLabels":{"controller-uid":"b"}}}])", "the label controller-uid"},
      {R"([{"labelSelector":{},"namespaceSelector":{}}])", "all pods of all namespaces"},
  };
  for (const auto& [terms, problem] : rows) {
    CHECK_EQ(terms_in("podAntiAffinity", terms).problem, std::string("required podAntiAffinity with ") + problem);
    CHECK_EQ(terms_in("podAffinity", terms).problem, std::string("required podAffinity with ") + problem);
  }
  CHECK_EQ(terms_in("podAffinity",
                    R"([{"labelSelector":{"matchExpressions":[{"key":"a","operator":"In","values":["b","c"]}]}}])")
               .problem,
           "required podAffinity with several values or namespaces");
  CHECK_EQ(terms_in("podAffinity", "[{}]").problem, "required podAffinity with a term that means no pod");
}

TEST_CASE("the job of a pod has its labels, and its terms at the level of the topology key") {
  ApiStandIn api({.topology = {"topology.kubernetes.io/zone", "rack"}, .levels = {"zone", "rack"}});
  api.node("n1", 8);
  api.name_space("team", "q");
  api.list();
  api.pod("a", 1, R"("app":"web")", apart_from(R"({"matchLabels":{"app":"web"}})"));
  api.pod("b", 1, R"("app":"web")", apart_from(R"({"matchLabels":{"app":"web"}})", "topology.kubernetes.io/zone"));
  api.pod("c", 1, R"("app":"web")", apart_from(R"({"matchLabels":{"app":"web"}})", "example.com/row"));
  api.settle();
  REQUIRE_EQ(api.jobs().size(), 2);
  const Labels web{{"app", "web"}, kTeam};
  CHECK(api.jobs()[0].spec.labels == web);
  CHECK(api.jobs()[0].spec.anti_affinity == std::vector<AffinityTerm>{{web, "node", true}});
  CHECK(api.jobs()[1].spec.anti_affinity == std::vector<AffinityTerm>{{web, "zone", true}});
  CHECK(api.told("c").find("topologyKey example.com/row") != std::string::npos);
}

TEST_CASE("a gang of equal pods keeps its pods apart, and one of different pods is refused by name") {
  ApiStandIn api;
  api.node("n1", 8);
  api.name_space("team", "q");
  api.list();
  const auto member = [](const std::string& group, const std::string& role) {
    return R"("berth.dev/group":")" + group + R"(","berth.dev/group-size":"2","app":")" + role + "\"";
  };
  for (const std::string name : {"a", "b"}) {
    api.pod("same-" + name, 1, member("same", "x"), apart_from(R"({"matchLabels":{"app":"x"}})"));
    api.pod("plain-" + name, 1, member("plain", name));
    api.pod("mixed-" + name, 1, member("mixed", name), apart_from(R"({"matchLabels":{"app":"x"}})"));
  }
  api.settle();
  REQUIRE_EQ(api.jobs().size(), 2);
  for (const SubmitJob& one : api.jobs()) {
    CHECK_EQ(one.spec.anti_affinity.size(), one.spec.name == "same" ? 1 : 0);
    CHECK_EQ(one.spec.labels.empty(), one.spec.name != "same");
  }
  CHECK(api.told("mixed-a").find("a gang whose pods differ") != std::string::npos);
}

}  // namespace berth::kube
