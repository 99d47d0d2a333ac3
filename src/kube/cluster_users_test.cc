#include <doctest/doctest.h>

#include <algorithm>

#include "kube/api_stand_in.h"
#include "kube/cluster.h"

namespace berth::kube {
namespace {

constexpr const char* kGangOfTwo = R"("berth.dev/group":"g","berth.dev/group-size":"2")";

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
  api.pod("a", 1, kGangOfTwo, "", made_by("oidc:ada"));
  api.pod("b", 1, kGangOfTwo, "", made_by("oidc:bob"));
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
  for (const char* name : {"a", "b"}) api.pod(name, 1, kGangOfTwo, "", made_by("oidc:ada"));
  api.settle();
  REQUIRE_EQ(api.jobs().size(), 1);
  api.remove(api.uid_of("b"));
  api.pod("c", 1, kGangOfTwo, "", made_by("oidc:mallory"));
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
  for (const char* name : {"a", "b"}) api.pod(name, 1, kGangOfTwo, "", made_by("oidc:ada"));
  api.settle();
  for (const char* name : {"a", "b"}) api.remove(api.uid_of(name));
  for (const char* name : {"c", "d"}) api.pod(name, 1, kGangOfTwo, "", made_by("oidc:bob"));
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
