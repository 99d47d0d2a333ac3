#include "backend/kubernetes/rights.h"

#include <doctest/doctest.h>

#include <algorithm>

using namespace berth;
using namespace berth::backend;

namespace {

HttpAnswer review(int status, const std::string& body) {
  HttpAnswer answer;
  answer.status = status;
  answer.body = body;
  return answer;
}

}  // namespace

TEST_CASE("the needed rights are list and watch of each kind, and what berth writes") {
  const auto rights = needed_rights({{kube::Kind::kPod, "/api/v1/pods", "", false},
                                     {kube::Kind::kPodGroup, "/apis/scheduling.k8s.io/v1beta1/podgroups", "", true}},
                                    "gpu");
  std::vector<std::string> texts;
  for (const Right& right : rights) texts.push_back(text_of(right));
  CHECK(texts[0] == "list pods");
  CHECK(texts[3] == "watch podgroups.scheduling.k8s.io");
  CHECK(std::count(texts.begin(), texts.end(), "create pods/binding") == 1);
  CHECK(texts.back() == "update leases.coordination.k8s.io in namespace gpu");
  CHECK(std::none_of(texts.begin(), texts.end(), [](const auto& text) { return text.ends_with("queues.berth.dev"); }));
  CHECK(text_of(queue_object_rights().front()) == "list queues.berth.dev");  // without these it runs
}

TEST_CASE("each right is asked for, and all that are missing are told at once") {
  RightsCheck check({{"list", "", "nodes", "", ""}, {"create", "", "pods", "binding", ""}, {"get", "g", "x", "", "n"}});
  const auto calls = check.calls();
  REQUIRE(calls.size() == 3);
  CHECK(calls[1].body.find(R"("verb":"create","group":"","resource":"pods","subresource":"binding")") !=
        std::string::npos);
  check.answered(2, review(201, R"({"status":{"allowed":false}})"));
  check.answered(0, review(201, R"({"status":{"allowed":true}})"));
  CHECK(!check.done());
  check.answered(1, review(201, R"({"status":{"allowed":false,"reason":"x"}})"));
  REQUIRE(check.done());
  REQUIRE(check.missing());
  CHECK(check.missing()->message ==
        "the API server does not let this user: create pods/binding, get x.g in namespace n. Grant these rights "
        "(docs/kubernetes.md)");
}

TEST_CASE("a server that does not answer such questions counts as one that allows") {
  RightsCheck check({{"list", "", "nodes", "", ""}, {"list", "", "pods", "", ""}});
  check.answered(0, review(403, R"({"status":{"allowed":false}})"));
  check.answered(1, review(201, "no json"));
  CHECK(check.done());
  CHECK(!check.missing());
}
