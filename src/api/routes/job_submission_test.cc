#include "api/routes/job_submission.h"

#include <doctest/doctest.h>

#include "api/routes/fake_service.h"

namespace berth::api {

TEST_CASE("a job is submitted with the highest role that may submit to its queue") {
  FakeService service;
  set_up_cluster(service);
  const auto role_with = [&](std::vector<RoleBinding> roles) {
    http::Request request;
    request.headers = {{"content-type", "application/json"}};
    request.body = R"({"queue":"a","gpus":1,"command":["true"]})";
    request.principal = {.name = "user:ann", .user = "ann", .roles = std::move(roles)};
    const auto submission = submission_of(service, request);
    REQUIRE(submission.has_value());
    return submission->role;
  };
  const RoleBinding member{"user:ann", Role::kMember, "a"};
  const RoleBinding lead{"user:ann", Role::kLead, "a"};
  CHECK(role_with({member, lead}) == Role::kLead);
  CHECK(role_with({lead, member}) == Role::kLead);
  CHECK(role_with({member, {"user:ann", Role::kOrgAdmin, "b"}}) == Role::kMember);   // elsewhere
  CHECK(role_with({member, {"user:ann", Role::kOperator, ""}}) == Role::kMember);    // submits nothing
  CHECK(role_with({member, {"user:ann", Role::kOrgAdmin, ""}}) == Role::kOrgAdmin);  // above
}

}  // namespace berth::api
