#include "kube/node_rule.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>

namespace berth::kube {
namespace {

SelectorRead read_terms(const std::string& terms) {
  return read_rule(boost::json::parse(R"({"nodeSelectorTerms":)" + terms + "}").as_object());
}
NodeRule selector_in(const std::string& terms) { return read_terms(terms).rule; }

const Labels kSixteenCores{{"cores", "16"}, {"kubernetes.io/hostname", "n1"}, {"zone", "z1"}};

}  // namespace

TEST_CASE("a node selector allows the nodes that Kubernetes would allow") {
  struct Row {
    const char* terms;
    bool allowed;
  };
  const Row rows[] = {
      {R"([{"matchExpressions":[{"key":"zone","operator":"In","values":["z2","z1"]}]}])", true},
      {R"([{"matchExpressions":[{"key":"zone","operator":"In","values":["z2"]}]}])", false},
      {R"([{"matchExpressions":[{"key":"rack","operator":"In","values":["r1"]}]}])", false},
      {R"([{"matchExpressions":[{"key":"zone","operator":"NotIn","values":["z2"]}]}])", true},
      {R"([{"matchExpressions":[{"key":"zone","operator":"NotIn","values":["z1"]}]}])", false},
      {R"([{"matchExpressions":[{"key":"rack","operator":"NotIn","values":["r1"]}]}])", true},
      {R"([{"matchExpressions":[{"key":"zone","operator":"Exists"}]}])", true},
      {R"([{"matchExpressions":[{"key":"rack","operator":"Exists"}]}])", false},
      {R"([{"matchExpressions":[{"key":"rack","operator":"DoesNotExist"}]}])", true},
      {R"([{"matchExpressions":[{"key":"cores","operator":"Gt","values":["15"]}]}])", true},
      {R"([{"matchExpressions":[{"key":"cores","operator":"Gt","values":["16"]}]}])", false},
      {R"([{"matchExpressions":[{"key":"cores","operator":"Lt","values":["17"]}]}])", true},
      {R"([{"matchExpressions":[{"key":"zone","operator":"Gt","values":["1"]}]}])", false},  // no number
      {R"([{"matchExpressions":[{"key":"zone","operator":"Near","values":["z1"]}]}])", false},
      {R"([{"matchFields":[{"key":"metadata.name","operator":"In","values":["node-1"]}]}])", true},
      {R"([{"matchFields":[{"key":"metadata.name","operator":"In","values":["node-2"]}]}])", false},
      // all of a term, any of the terms; an empty term and no term allow none
      {R"([{"matchExpressions":[{"key":"zone","operator":"In","values":["z1"]},{"key":"rack","operator":"Exists"}]}])",
       false},
      {R"([{"matchExpressions":[{"key":"rack","operator":"Exists"}]},)"
       R"({"matchExpressions":[{"key":"zone","operator":"In","values":["z1"]}]}])",
       true},
      {R"([{}])", false},
      {R"([])", false},
  };
  for (const Row& row : rows) {
    CAPTURE(row.terms);
    CHECK_EQ(allows(selector_in(row.terms), "node-1", kSixteenCores), row.allowed);
  }
}

TEST_CASE("rules are told apart by their marks, and are said in words") {
  const char* rows[] = {R"([{"matchExpressions":[{"key":"zone","operator":"In","values":["z2","z1"]}]}])",
                        R"([{"matchExpressions":[{"key":"zone","operator":"NotIn","values":["z1"]}]}])",
                        R"([{"matchFields":[{"key":"metadata.name","operator":"NotIn","values":["z1"]}]}])",
                        R"([{"matchExpressions":[{"key":"zone","operator":"In","values":["z1"]}]},{}])",
                        R"([{}])",
                        "[]"};
  std::vector<std::string> marks;
  for (const char* terms : rows) {
    CAPTURE(terms);
    const std::string mark = mark_of(selector_in(terms));
    CHECK_EQ(mark, mark_of(selector_in(terms)));
    CHECK(std::find(marks.begin(), marks.end(), mark) == marks.end());
    marks.push_back(mark);
  }
  CHECK_EQ(text_of(selector_in(rows[0])), "zone in (z1, z2)");
  CHECK_EQ(text_of(selector_in(rows[2])), "the node's name not in (z1)");
  CHECK_EQ(text_of(selector_in(rows[4])), "no node");
}

// The cases of TestNodeAffinity in pkg/scheduler/framework/plugins/nodeaffinity/node_affinity_test.go.
TEST_CASE("the table of kube-scheduler's own test of node affinity") {
  struct Row {
    const char* terms;
    Labels labels;
    bool fits;
  };
  const Row rows[] = {
      {R"([{"matchExpressions":[{"key":"foo","operator":"In","values":["bar","value2"]}]}])", {{"foo", "bar"}}, true},
      {R"([{"matchExpressions":[{"key":"kernel-version","operator":"Gt","values":["0204"]}]}])",
       {{"kernel-version", "0206"}},
       true},
      {R"([{"matchExpressions":[{"key":"mem-type","operator":"NotIn","values":["DDR","DDR2"]}]}])",
       {{"mem-type", "DDR3"}},
       true},
      {R"([{"matchExpressions":[{"key":"GPU","operator":"Exists"}]}])", {{"GPU", "NVIDIA-GRID-K1"}}, true},
      {R"([{"matchExpressions":[{"key":"foo","operator":"In","values":["value1","value2"]}]}])",
       {{"foo", "bar"}},
       false},
      {"[]", {{"foo", "bar"}}, false},
      {R"([{"matchExpressions":[]}])", {{"foo", "bar"}}, false},
      {R"([{"matchExpressions":[{"key":"GPU","operator":"Exists"},)"
       R"({"key":"GPU","operator":"NotIn","values":["AMD","INTER"]}]}])",
       {{"GPU", "NVIDIA-GRID-K1"}},
       true},
      {R"([{"matchExpressions":[{"key":"GPU","operator":"Exists"},)"
       R"({"key":"GPU","operator":"In","values":["AMD","INTER"]}]}])",
       {{"GPU", "NVIDIA-GRID-K1"}},
       false},
      {R"([{"matchExpressions":[{"key":"foo","operator":"In","values":["bar","value2"]}]},)"
       R"({"matchExpressions":[{"key":"diffkey","operator":"In","values":["wrong","value2"]}]}])",
       {{"foo", "bar"}},
       true},
      {R"([{"matchExpressions":[{"key":"foo","operator":"NotIn","values":["invalid value: ___@#$%^"]}]}])",
       {{"foo", "bar"}},
       true},  // the API server refuses the value
      {R"([{"matchFields":[{"key":"metadata.name","operator":"In","values":["node-1"]}]}])", {}, true},
      {R"([{"matchFields":[{"key":"metadata.name","operator":"In","values":["node-2"]}]}])", {}, false},
      {R"([{"matchFields":[{"key":"metadata.name","operator":"In","values":["node-2"]}]},)"
       R"({"matchExpressions":[{"key":"foo","operator":"In","values":["bar"]}]}])",
       {{"foo", "bar"}},
       true},
      {R"([{"matchFields":[{"key":"metadata.name","operator":"In","values":["node-2"]}],)"
       R"("matchExpressions":[{"key":"foo","operator":"In","values":["bar"]}]}])",
       {{"foo", "bar"}},
       false},
      {R"([{"matchFields":[{"key":"metadata.name","operator":"In","values":["node-1"]}],)"
       R"("matchExpressions":[{"key":"foo","operator":"In","values":["bar"]}]}])",
       {{"foo", "bar"}},
       true},
      {R"([{"matchFields":[{"key":"metadata.name","operator":"In","values":["node-2"]}]},)"
       R"({"matchExpressions":[{"key":"foo","operator":"In","values":["not-match"]}]}])",
       {{"foo", "bar"}},
       false},
      // what a missing label, and one that is no number, mean
      {R"([{"matchExpressions":[{"key":"foo","operator":"Lt","values":["5"]}]}])", {}, false},
      {R"([{"matchExpressions":[{"key":"foo","operator":"NotIn","values":["bar"]}]}])", {}, true},
      {R"([{"matchExpressions":[{"key":"foo","operator":"Gt","values":["+4"]}]}])", {{"foo", "5"}}, true},
      {R"([{"matchExpressions":[{"key":"foo","operator":"Gt","values":["4"]}]}])", {{"foo", "five"}}, false},
      {R"([{"matchExpressions":[{"key":"foo","operator":"Lt","values":["-4"]}]}])", {{"foo", "-5"}}, true},
  };
  for (const Row& row : rows) {
    CAPTURE(row.terms);
    CHECK_EQ(allows(selector_in(row.terms), "node-1", row.labels), row.fits);
  }
}

TEST_CASE("what of a selector is not obeyed is named, and allows no node") {
  const auto many = [](const std::string& one, std::size_t count) {
    std::string list = one;
    for (std::size_t i = 1; i < count; ++i) list += "," + one;
    return list;
  };
  const std::string in = R"({"key":"a","operator":"Exists"})";
  const std::string values = many("\"v\"", 1001);
  const std::pair<std::string, std::string> rows[] = {
      {R"([{"matchExpressions":[{"key":"a","operator":"Near","values":["b"]}]}])",
       "an operator for a that berth does not know"},
      {R"([{"matchFields":[{"key":"metadata.uid","operator":"In","values":["b"]}]}])", "the field metadata.uid"},
      {R"([{"matchExpressions":[)" + many(in, 101) + "]}]", "over 100 expressions in a term"},
      {R"([{"matchExpressions":[{"key":"a","operator":"NotIn","values":[)" + values + "]}]}]",
       "over 1000 values for a"},
      {R"([{"matchExpressions":[{"key":"a","operator":"In","values":[]}]}])",
       "an expression for a that is none: In needs at least one value"},
  };
  for (const auto& [terms, problem] : rows) {
    CAPTURE(problem);
    CHECK_EQ(read_terms(terms).problem, problem);
    CHECK_FALSE(allows(selector_in(terms), "n", {{"a", "x"}}));
  }
  CHECK_EQ(read_terms("[" + many(R"({"matchExpressions":[)" + in + "]}", 101) + "]").problem, "over 100 terms");
  CHECK_EQ(read_terms(R"([{"matchExpressions":[)" + many(in, 100) + "]}]").problem, "");
}

}  // namespace berth::kube
