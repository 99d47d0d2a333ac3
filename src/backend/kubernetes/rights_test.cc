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

TEST_CASE("Secrets are made where pods report their saves, and never read") {
  const auto has = [](bool saves, const std::string& text) {
    const auto rights = needed_rights({}, "gpu", {"jobs"}, saves);
    return std::any_of(rights.begin(), rights.end(), [&](const Right& one) { return text_of(one) == text; });
  };
  CHECK(has(true, "create secrets in namespace jobs"));
  CHECK(!has(false, "create secrets in namespace jobs"));
  CHECK(!has(true, "get secrets in namespace jobs"));
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

TEST_CASE("a denial, of a right or of the question, is believed when it has lasted for a minute") {
  constexpr std::chrono::seconds kMinute{60};
  const Clock::time_point begin{};
  const HttpAnswer yes = review(201, R"({"status":{"allowed":true}})");
  const HttpAnswer no = review(201, R"({"status":{"allowed":false}})");
  const HttpAnswer refused = review(403, R"({"message":"User \"berth\" cannot create resource"})");
  RightsCheck check({{"list", "", "nodes", "", ""}, {"get", "g", "x", "", "n"}});
  const auto answer = [&](const HttpAnswer& first, const HttpAnswer& second, std::chrono::seconds at) {
    check.ask_anew();
    check.answered(0, first);
    CHECK(!check.may_change(begin + at, kMinute));  // not all were answered
    check.answered(1, second);
    return check.may_change(begin + at, kMinute);
  };
  CHECK(answer(refused, refused, std::chrono::seconds(5)));
  CHECK(!check.missing());
  CHECK(check.denial() == R"(answer what this user may do: User "berth" cannot create resource)");
  CHECK(answer(yes, no, std::chrono::seconds(64)));
  CHECK(check.denial() == "let this user: get x.g in namespace n");
  SUBCASE("it is over") {
    CHECK(!answer(yes, yes, std::chrono::seconds(65)));
    CHECK(check.denial().empty());
    CHECK(!check.missing());
  }
  SUBCASE("it lasts") {
    CHECK(!answer(yes, no, std::chrono::seconds(65)));
    CHECK(check.missing());
  }
}

TEST_CASE("a server that does not answer such questions counts as one that allows") {
  RightsCheck check({{"list", "", "nodes", "", ""}, {"list", "", "pods", "", ""}});
  check.answered(0, review(403, R"({"status":{"allowed":false}})"));
  check.answered(1, review(201, "no json"));
  CHECK(check.done());
  CHECK(!check.missing());
}
