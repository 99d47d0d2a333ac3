#include "kube/user_stamp.h"

#include <doctest/doctest.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kube/api_stand_in.h"

namespace berth::kube {
namespace {

// The specification of the policy for pods, as an API server 1.37.2 has it of the chart.
constexpr const char* kOfPods =
    R"json({)json"
    R"json( "matchConstraints":{"namespaceSelector": {"matchExpressions": [{"key": "kubernetes.io/metadata.name", )json"
    R"json("operator": "NotIn", "values": ["kube-system", "gpu-operator", "berth"]}]}, "objectSelector": {}, )json"
    R"json("resourceRules": [{"operations": ["CREATE", "UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], )json"
    R"json("resources": ["pods"], "scope": "*"}], "matchPolicy": "Equivalent"},)json"
    R"json( "variables":[)json"
    R"json(  {"name": "mark", "expression": "'0123456789abcdef'"},)json"
    R"json(  {"name": "stamp", "expression": "request.operation == 'CREATE' ? variables.mark + ' ' + )json"
    R"json(request.userInfo.username : oldObject.metadata.?annotations[?'berth.dev/made-by'].orValue('')"})json"
    R"json( ],)json"
    R"json( "mutations":[)json"
    R"json(  {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{metadata: )json"
    R"json(Object.metadata{annotations: {'berth.dev/made-by': variables.stamp}}}"}})json"
    R"json( ],)json"
    R"json( "failurePolicy":"Fail",)json"
    R"json( "matchConditions":[)json"
    R"json(  {"name": "not-a-kubelet", "expression": "!('system:nodes' in request.userInfo.groups)"},)json"
    R"json(  {"name": "not-of-kubernetes", "expression": "!(request.userInfo.username in )json"
    R"json(['system:kube-controller-manager', )json"
    R"json('system:serviceaccount:kube-system:deployment-controller', )json"
    R"json('system:serviceaccount:kube-system:replicaset-controller', )json"
    R"json('system:serviceaccount:kube-system:replication-controller', )json"
    R"json('system:serviceaccount:kube-system:statefulset-controller', )json"
    R"json('system:serviceaccount:kube-system:daemon-set-controller', )json"
    R"json('system:serviceaccount:kube-system:job-controller', )json"
    R"json('system:serviceaccount:kube-system:cronjob-controller'])"},)json"
    R"json(  {"name": "not-of-a-controller", "expression": "!(request.userInfo.username in )json"
    R"json([\"system:serviceaccount:berth:berth\",\"system:serviceaccount:operators:jobset\"])"},)json"
    R"json(  {"name": "changes", "expression": "request.operation == 'CREATE' || )json"
    R"json(object.metadata.?annotations[?'berth.dev/made-by'].orValue('') != )json"
    R"json(oldObject.metadata.?annotations[?'berth.dev/made-by'].orValue('')"})json"
    R"json( ],)json"
    R"json( "reinvocationPolicy":"IfNeeded")json"
    R"json(})json";

boost::json::object policy() { return {{"spec", boost::json::parse(kOfPods)}}; }

// Returns the policy with one text in place of another.
boost::json::object with(const std::string& text, const std::string& other) {
  std::string all = boost::json::serialize(policy());
  const std::size_t at = all.find(text);
  REQUIRE_NE(at, std::string::npos);
  all.replace(at, text.size(), other);
  return ApiStandIn::json(all);
}

std::string flaw_of(const boost::json::object& one) {
  const auto read = read_stamp_policy("berth-users-pods", one);
  return read ? std::string() : read.error().message;
}

}  // namespace

TEST_CASE("the chart's policy for pods is believed, and says by which mark and where") {
  const auto rules = read_stamp_policy("berth-users-pods", policy());
  REQUIRE(rules);
  CHECK_EQ(rules->mark, "0123456789abcdef");
  CHECK(rules->left_out == std::set<std::string>{"berth", "gpu-operator", "kube-system"});
  CHECK_EQ(flaw_of(with("\"gpu-operator\",", "")), "");  // a value of the chart
  CHECK_EQ(flaw_of(with("system:serviceaccount:operators:jobset", "system:serviceaccount:a:b")), "");
}

TEST_CASE("a policy that does anything else than the chart's is not believed") {
  const std::vector<std::pair<std::string, std::string>> changes{
      {"\"UPDATE\"", "\"CONNECT\""},
      {"request.userInfo.username :", "'ann' :"},
      {"\"Fail\"", "\"Ignore\""},
      {"system:nodes", "system:authenticated"},
      {R"("objectSelector":{})", R"("objectSelector":{"matchLabels":{"a":"b"}})"}};
  for (const auto& change : changes) {
    CAPTURE(change.first);
    CHECK_NE(flaw_of(with(change.first, change.second)).find("it does something else than that of this version ("),
             std::string::npos);
  }
  CHECK_NE(flaw_of({}).find("is not the one of berth's chart"), std::string::npos);
  const boost::json::object of_other = policy();
  CHECK(!read_stamp_policy("berth-users-templates", of_other));
}

TEST_CASE("what the chart's values change in a policy is checked as well") {
  const std::string list = "[\\\"system:serviceaccount:berth:berth\\\",\\\"system:serviceaccount:operators:jobset\\\"]";
  CHECK_NE(flaw_of(with(list, "request.userInfo.groups")).find("not-of-a-controller"), std::string::npos);
  CHECK_NE(flaw_of(with("system:serviceaccount:operators:jobset", "oidc:ada")).find("not-of-a-controller"),
           std::string::npos);
  CHECK_NE(flaw_of(with("\"NotIn\"", "\"In\"")).find("namespaceSelector"), std::string::npos);
  CHECK_NE(flaw_of(with("kubernetes.io/metadata.name", "team")).find("namespaceSelector"), std::string::npos);
  CHECK_NE(flaw_of(with("'0123456789abcdef'", "'short'")).find("mark"), std::string::npos);
  CHECK_NE(flaw_of(with("'0123456789abcdef'", "request.name")).find("mark"), std::string::npos);
}

TEST_CASE("a binding holds for the whole of the cluster") {
  CHECK(check_stamp_binding("p", ApiStandIn::json(R"({"spec":{"policyName":"p"}})")));
  for (const char* other : {R"({"spec":{"policyName":"q"}})", R"({})",
                            R"({"spec":{"policyName":"p","matchResources":{"objectSelector":{}}}})",
                            R"({"spec":{"policyName":"p","paramRef":{"name":"x"}}})"})
    CHECK(!check_stamp_binding("p", ApiStandIn::json(other)));
}

TEST_CASE("a stamp names the user that the flag says, and all else none") {
  const StampRules rules{"0123abcd", {"kube-system"}};
  const auto names = read_stamped_names("oidc:=corp:,oidc:admin-=root:");
  REQUIRE(names);
  const auto user = [&](const std::string& stamp, const std::string& space = "team") {
    return user_of_stamp(stamp, space, rules, *names);
  };
  CHECK_EQ(user("0123abcd oidc:ada@example.com"), "corp:ada@example.com");
  CHECK_EQ(user("0123abcd oidc:admin-bob"), "root:bob");  // the longest that fits
  CHECK_EQ(user("0123abcd oidc:a b"), "corp:a b");
  for (const char* none : {"", "oidc:ada", "0123abcd", "0123abcd ", "0123abcdoidc:ada", "0123abce oidc:ada",
                           "0123abcd ada", "0123abcd oidc:", "0123abcd oidc: ada", "0123abcd oidc:a\nb"})
    CHECK_EQ(user(none), "");
  CHECK_EQ(user("0123abcd oidc:ada", "kube-system"), "");
  const std::vector<StampedName> all = {{"", ""}};
  CHECK_EQ(user_of_stamp("0123abcd ann", "team", rules, all), "ann");
  CHECK_EQ(user_of_stamp("0123abcd system:serviceaccount:team:ci", "team", rules, all), "");
  CHECK_EQ(user_of_stamp("0123abcd kubernetes:other", "team", rules, all), "");  // another namespace's
  CHECK_EQ(user_of_stamp(" ann", "team", {}, all), "");                          // without rules
}

TEST_CASE("a flag that does not say whose name stands for whose is refused") {
  for (const char* wrong : {"oidc:", "oidc:=corp", "oidc:=a:b:", "a=b:,,c=d:", "a=kubernetes:"}) {
    CAPTURE(wrong);
    const auto read = read_stamped_names(wrong);
    REQUIRE(!read);
    CHECK_EQ(read.error().message.find("--user-stamps: '"), 0);
  }
  CHECK(read_stamped_names("")->empty());
  CHECK_EQ(read_stamped_names("https://a=b#=corp:")->front().from, "https://a=b#");
}

}  // namespace berth::kube
