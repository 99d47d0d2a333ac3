#include "backend/kubernetes/stamp_check.h"

#include <doctest/doctest.h>

using namespace berth;
using namespace berth::backend;

namespace {

HttpAnswer answer(int status, const std::string& body = "{}") {
  HttpAnswer one;
  one.status = status;
  one.body = body;
  return one;
}

// Returns the error where the call of this number gets this answer, and all others are not found.
Error error_with(std::size_t number, const HttpAnswer& one) {
  StampCheck check;
  const std::size_t calls = check.begin().size();
  check.answered(number, one);
  for (std::size_t i = 0; i < calls; ++i) {
    CHECK(!check.done());
    if (i != number) check.answered(i, answer(500));
  }
  REQUIRE(check.done());
  REQUIRE(!check.result());
  return check.result().error();
}

}  // namespace

TEST_CASE("each policy that stamps pods is looked at, and its binding") {
  StampCheck check;
  const auto calls = check.begin();
  REQUIRE(calls.size() == 8);
  CHECK(calls[0].path == "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies/berth-users-pods");
  CHECK(calls[7].path == "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings/berth-users-operators");
}

TEST_CASE("one that is missing, may not be read or is another one is told by name") {
  CHECK(error_with(1, answer(404)).message.find("there is no MutatingAdmissionPolicy berth-users-templates; ") == 0);
  CHECK(error_with(4, answer(404)).message.find("there is no MutatingAdmissionPolicyBinding berth-users-pods; ") == 0);
  CHECK(error_with(0, answer(403, R"({"message":"no"})")).message == "the API server does not let this user look: no");
  CHECK(error_with(2, answer(200, R"({"spec":{}})"))
            .message.find("MutatingAdmissionPolicy berth-users-cronjobs is not") != std::string::npos);
  CHECK(error_with(5, answer(200, R"({"spec":{"policyName":"x"}})")).message.find("berth-users-templates is not") !=
        std::string::npos);
}

TEST_CASE("a server that does not answer has not said that stamps are not to be believed") {
  for (const int status : {0, 429, 500}) CHECK(error_with(0, answer(status)).code == ErrorCode::kUnavailable);
  CHECK(error_with(0, answer(200, "<html>")).code == ErrorCode::kUnavailable);
}
