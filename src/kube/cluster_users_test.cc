#include <doctest/doctest.h>

#include <algorithm>

#include "kube/api_stand_in.h"
#include "kube/cluster.h"

namespace berth::kube {
namespace {

constexpr const char* kStampedGang = R"("berth.dev/group":"g","berth.dev/group-size":"2")";

std::string made_by(const std::string& user) {
  return R"("annotations":{"berth.dev/made-by":"0123abcd )" + user + R"("})";
}

Options stamped() {
  Options options;
  options.stamped = {{"oidc:", "corp:"}};
  return options;
}

// Two nodes, a namespace, and stamps that are believed.
struct Stamped : ApiStandIn {
  explicit Stamped(std::optional<StampRules> rules = StampRules{"0123abcd", {}}, Options options = stamped())
      : ApiStandIn(std::move(options)) {
    node("n1", 8);
    node("n2", 8);
    name_space("team", "research/nlp, product/*");
    list();
    cluster().believe(std::move(rules), now());
    settle();
  }
  std::string user_of_last() const { return jobs().empty() ? std::string() : jobs().back().spec.user; }
};

std::size_t cancels_in(const ApiStandIn& api) {
  return static_cast<std::size_t>(std::count_if(api.commands.begin(), api.commands.end(), [](const Command& command) {
    return std::holds_alternative<CancelJob>(command);
  }));
}

}  // namespace

TEST_CASE("the job of a pod is that of the user that it is stamped with") {
  Stamped api;
  api.pod("a", 1, "", "", made_by("oidc:ada"));
  api.settle();
  CHECK_EQ(api.user_of_last(), "corp:ada");
  api.pod("b", 1, "", "", made_by("system:serviceaccount:team:ci"));
  api.settle();
  CHECK_EQ(api.user_of_last(), "kubernetes:team");
  api.pod("c", 1);
  api.settle();
  CHECK_EQ(api.user_of_last(), "kubernetes:team");
}

TEST_CASE("no stamp is believed where the policies are not as they should be, or the flag is not given") {
  Stamped api(std::nullopt);
  api.pod("a", 1, "", "", made_by("oidc:ada"));
  api.settle();
  CHECK_EQ(api.user_of_last(), "kubernetes:team");
  api.cluster().believe(StampRules{"0123abcd", {"team"}}, api.now());  // they do not hold in this namespace
  api.pod("b", 1, "", "", made_by("oidc:ada"));
  api.settle();
  CHECK_EQ(api.user_of_last(), "kubernetes:team");
  Stamped without(StampRules{"0123abcd", {}}, {});
  without.pod("a", 1, "", "", made_by("oidc:ada"));
  without.settle();
  CHECK_EQ(without.user_of_last(), "kubernetes:team");
}

TEST_CASE("nothing is submitted before it is known whether stamps are believed") {
  ApiStandIn api(stamped());
  api.node("n1", 8);
  api.name_space("team", "research/nlp");
  api.pod("a", 1, "", "", made_by("oidc:ada"));
  api.list();
  CHECK(api.commands.empty());
  api.cluster().believe(StampRules{"0123abcd", {}}, api.now());
  api.settle();
  REQUIRE_EQ(api.jobs().size(), 1);
  CHECK_EQ(api.jobs()[0].spec.user, "corp:ada");
}

TEST_CASE("a group whose pods two users have made is refused, and told") {
  Stamped api;
  api.pod("a", 1, kStampedGang, "", made_by("oidc:ada"));
  api.pod("b", 1, kStampedGang, "", made_by("oidc:bob"));
  api.settle();
  CHECK(api.jobs().empty());
  CHECK_NE(api.told("a").find("the pods of its group are of two users: a is of 'corp:ada', b of 'corp:bob'"),
           std::string::npos);
}

TEST_CASE("a suspended Job is of the user that its template is stamped with") {
  Stamped api;
  api.owner(Kind::kJob,
            R"({"metadata":{"name":"j","namespace":"team","uid":"u","labels":{"berth.dev/queue":"research.nlp"}},)"
            R"("spec":{"suspend":true,"parallelism":2,"completions":2,"completionMode":"Indexed",)"
            R"("template":{"metadata":{)" +
                made_by("oidc:ada") +
                R"(},"spec":{"schedulerName":"berth","containers":[{"name":"m","image":"a:1"}]}}}})");
  api.settle();
  REQUIRE_EQ(api.jobs().size(), 1);
  CHECK_EQ(api.jobs()[0].spec.user, "corp:ada");
  CHECK_EQ(api.jobs()[0].spec.groups[0].image, "a:1");
}

TEST_CASE("a pod of another user that joins a group is not charged to the first") {
  Stamped api;
  for (const char* name : {"a", "b"}) api.pod(name, 1, kStampedGang, "", made_by("oidc:ada"));
  api.settle();
  REQUIRE_EQ(api.jobs().size(), 1);
  api.remove(api.uid_of("b"));
  api.pod("c", 1, kStampedGang, "", made_by("oidc:mallory"));
  api.settle();
  for (std::uint32_t number = 0; number < 2; ++number) {
    StartTask start;
    start.key = {JobId(1), 1, number, 1};
    start.node = "n1";
    start.user = "corp:ada";
    start.gpu_uuids = {"node-n1:" + std::to_string(number)};
    start.source = api.jobs()[0].spec.source;
    api.start(start);
  }
  CHECK_EQ(api.node_of("c"), "");
  api.pass(3);
  CHECK_EQ(api.node_of("c"), "");
}

TEST_CASE("pods that another user makes anew are another job") {
  Stamped api;
  for (const char* name : {"a", "b"}) api.pod(name, 1, kStampedGang, "", made_by("oidc:ada"));
  api.settle();
  for (const char* name : {"a", "b"}) api.remove(api.uid_of(name));
  for (const char* name : {"c", "d"}) api.pod(name, 1, kStampedGang, "", made_by("oidc:bob"));
  api.pass(2);
  CHECK_EQ(cancels_in(api), 1);
  api.cluster().finished(JobId(1), true, api.now());
  api.settle();
  CHECK_EQ(api.user_of_last(), "corp:bob");
  api.pass(5);
  CHECK_EQ(cancels_in(api), 1);
  CHECK_EQ(api.jobs().size(), 2);
}

TEST_CASE("the images of all containers are told with the job, and no pod is made for them") {
  Stamped api;
  api.pod("a", 1, "", R"("initContainers":[{"name":"first","image":"setup:2"},{"name":"again","image":"setup:2"}])");
  api.settle();
  REQUIRE_EQ(api.jobs().size(), 1);
  CHECK_EQ(api.jobs()[0].more_images, std::vector<std::string>{});
  CHECK_EQ(api.jobs()[0].spec.groups[0].image, "setup:2");  // the stand-in's container has none
  StartTask start;
  start.key = {JobId(1), 1, 0, 1};
  start.node = "n1";
  start.image = "setup:2";
  start.user = "kubernetes:team";
  start.gpu_uuids = {"node-n1:0"};
  start.source = api.jobs()[0].spec.source;
  api.start(start);
  CHECK_EQ(api.node_of("a"), "n1");
  CHECK_EQ(api.pods_.size(), 1);
}

TEST_CASE("what the pods of a job may be forbidden is told with the job, of all of them and of templates") {
  Stamped api;
  const std::string privileged = R"("initContainers":[{"name":"i","securityContext":{"privileged":true}}])";
  api.pod("a", 1, kStampedGang);
  api.pod("b", 1, kStampedGang, privileged);
  api.settle();
  REQUIRE_EQ(api.jobs().size(), 1);
  const auto has = [](const PodRisks& risks, const PodRisk& one) {
    return risks && std::find(risks->begin(), risks->end(), one) != risks->end();
  };
  CHECK(has(api.jobs()[0].pod_risks, {ForbiddenOption::kPrivileged, "i", ""}));
  CHECK(has(api.jobs()[0].pod_risks, {ForbiddenOption::kRoot, "main", ""}));
  api.owner(Kind::kJob,
            R"({"metadata":{"name":"train","namespace":"team","uid":"u1","labels":{"berth.dev/queue":"research.nlp"}},)"
            R"("spec":{"suspend":true,"parallelism":1,"completions":1,"template":{"spec":{"schedulerName":"berth",)"
            R"("hostPID":true,"containers":[{"name":"m","image":"a:1"}]}}}})");
  api.settle();
  REQUIRE_EQ(api.jobs().size(), 2);
  CHECK(has(api.jobs()[1].pod_risks, {ForbiddenOption::kHostNamespaces, "", "hostPID"}));
}

TEST_CASE("a pod that joins a group and asks for what is forbidden, and was not judged, is told and not started") {
  Stamped api;
  for (const char* name : {"a", "b"}) api.pod(name, 1, kStampedGang);
  api.settle();
  REQUIRE_EQ(api.jobs().size(), 1);
  const PodRisks judged = api.jobs()[0].pod_risks;
  api.remove(api.uid_of("b"));
  api.pod("c", 1, kStampedGang, R"("hostNetwork":true)");
  api.settle();
  const auto start_of = [&](std::uint32_t number, ForbiddenToPods forbidden) {
    StartTask start;
    start.key = {JobId(1), 1, number, 1};
    start.node = "n1";
    start.user = "kubernetes:team";
    start.gpu_uuids = {"node-n1:" + std::to_string(number)};
    start.source = api.jobs()[0].spec.source;
    start.pod_risks = judged;
    start.forbidden = std::move(forbidden);
    return start;
  };
  SUBCASE("where a rule forbids it") {
    for (std::uint32_t number = 0; number < 2; ++number)
      api.start(start_of(number, {{ForbiddenOption::kHostNamespaces, ForbiddenOption::kRoot}, {}}));
    api.pass(3);
    CHECK_EQ(api.node_of("c"), "");
    CHECK_NE(api.told("c").find(
                 "it joins the group of job 1 and asks for what a rule forbids and no pod of the job had asked for: "
                 "host-namespaces. Make it as the others are"),
             std::string::npos);
    api.pass(125);
    const auto* end = api.exit_of({JobId(1), 1, 1, 1});
    REQUIRE(end != nullptr);
    CHECK(end->message.ends_with("one asks for what a rule forbids and its job did not, host-namespaces"));
  }
  SUBCASE("where no rule does, it is started") {
    for (std::uint32_t number = 0; number < 2; ++number) api.start(start_of(number, {{ForbiddenOption::kRoot}, {}}));
    CHECK_EQ(api.node_of("c"), "n1");
  }
}

TEST_CASE("a refusal of several lines is told to the pods in one") {
  Stamped api;
  api.answers = false;
  api.pod("a", 1);
  api.settle();
  REQUIRE_EQ(api.jobs().size(), 1);
  api.cluster().refused(api.jobs()[0].key, "one\ntwo", api.now());
  api.settle();
  CHECK_NE(api.told("a").find("\"one; two\""), std::string::npos);
}

TEST_CASE("the image of the main container is that of the task, and the others are judged besides") {
  const auto read = read_pod(
      ApiStandIn::json(
          R"({"metadata":{"name":"a","namespace":"team","uid":"u","annotations":)"
          R"({"kubectl.kubernetes.io/default-container":"main"}},"spec":{"schedulerName":"berth","containers":[)"
          R"({"name":"proxy","image":"proxy:1"},{"name":"main","image":"train:1"}],)"
          R"("initContainers":[{"name":"i","image":"setup:1"},{"name":"j","image":"train:1"}]}})"),
      "berth");
  REQUIRE(read);
  CHECK_EQ(read->wish.images, std::vector<std::string>{"train:1", "proxy:1", "setup:1"});
  CHECK_EQ(read->wish.problem, "");
  const auto wrong = read_pod(ApiStandIn::json(R"({"metadata":{"name":"a","namespace":"team","uid":"u"},"spec":)"
                                               R"({"containers":[{"name":"m","image":"no image"}]}})"),
                              "berth");
  CHECK_NE(wrong->wish.problem.find("image 'no image' is no name of an image"), std::string::npos);
}

}  // namespace berth::kube
