#include "backend/kubernetes/lease.h"

#include <doctest/doctest.h>

#include <string>

using namespace berth;
using namespace berth::backend;
using namespace std::chrono_literals;

namespace {

constexpr Clock::time_point kBegin{};

HttpAnswer lease_of(const std::string& holder, const std::string& version, int status = 200) {
  HttpAnswer answer;
  answer.status = status;
  answer.body = R"({"metadata":{"resourceVersion":")" + version + R"("},"spec":{"holderIdentity":")" + holder +
                R"(","leaseDurationSeconds":15,"leaseTransitions":2}})";
  return answer;
}

HttpAnswer status_of(int status) {
  HttpAnswer answer;
  answer.status = status;
  return answer;
}

}  // namespace

TEST_CASE("a lease that is not there is created, and renewed every 4 s under its version") {
  Lease lease("ns", "berth", "me");
  auto call = lease.next(kBegin, {0});
  REQUIRE(call);
  CHECK(call->method == "GET");
  CHECK(call->path == "/apis/coordination.k8s.io/v1/namespaces/ns/leases/berth");
  CHECK(!lease.next(kBegin, {0}));  // one call at a time
  lease.answered(status_of(404), kBegin);
  call = lease.next(kBegin, {1'000});
  REQUIRE(call);
  CHECK(call->method == "POST");
  CHECK(call->body.find(R"("renewTime":"1970-01-01T00:00:01.000000Z")") != std::string::npos);
  CHECK(!lease.may_write(kBegin));
  lease.answered(lease_of("me", "7", 201), kBegin + 1s);
  CHECK(lease.may_write(kBegin + 9s));
  CHECK(!lease.may_write(kBegin + 10s));  // counted from when the renewal was sent
  CHECK(!lease.next(kBegin + 3s, {0}));
  call = lease.next(kBegin + 4s, {0});
  REQUIRE(call);
  CHECK(call->method == "PUT");
  CHECK(call->body.find(R"("resourceVersion":"7")") != std::string::npos);
}

TEST_CASE("a server that starts again on its directory takes its lease back at once") {
  Lease lease("ns", "berth", "me");
  REQUIRE(lease.next(kBegin, {0}));
  lease.answered(lease_of("me", "7"), kBegin);
  const auto call = lease.next(kBegin, {0});
  REQUIRE(call);
  CHECK(call->method == "PUT");
  CHECK(call->body.find(R"("leaseTransitions":2)") != std::string::npos);
}

TEST_CASE("a lease that another server renews is an error that names it") {
  Lease lease("ns", "berth", "me");
  REQUIRE(lease.next(kBegin, {0}));
  lease.answered(lease_of("other", "7"), kBegin);
  CHECK(!lease.lost());
  REQUIRE(lease.next(kBegin + 1s, {0}));
  lease.answered(lease_of("other", "8"), kBegin + 1s);
  REQUIRE(lease.lost());
  CHECK(lease.lost()->message.find("'other' renews the Lease ns/berth") != std::string::npos);
  CHECK(!lease.next(kBegin + 100s, {0}));
}

TEST_CASE("a lease that another server has left is taken over after its duration, if it is not renewed meanwhile") {
  Lease lease("ns", "berth", "me");
  for (int second = 0; second < 15; ++second) {
    const auto call = lease.next(kBegin + second * 1s, {0});
    REQUIRE(call);
    CHECK(call->method == "GET");
    lease.answered(lease_of("other", "7"), kBegin + second * 1s);
  }
  REQUIRE(lease.next(kBegin + 15s, {0}));
  lease.answered(lease_of("other", "7"), kBegin + 15s);
  const auto call = lease.next(kBegin + 15s, {0});
  REQUIRE(call);
  CHECK(call->method == "PUT");
  CHECK(call->body.find(R"("leaseTransitions":3)") != std::string::npos);
  lease.answered(status_of(409), kBegin + 15s);
  CHECK(!lease.held());
  REQUIRE(lease.next(kBegin + 15s, {0}));
  lease.answered(lease_of("other", "8"), kBegin + 15s);
  CHECK(lease.lost());
}

TEST_CASE("without answers it stops writing, and goes on when its lease is still there; if not, it is lost") {
  Lease lease("ns", "berth", "me");
  REQUIRE(lease.next(kBegin, {0}));
  lease.answered(status_of(404), kBegin);
  REQUIRE(lease.next(kBegin, {0}));
  lease.answered(lease_of("me", "7", 201), kBegin);
  REQUIRE(lease.next(kBegin + 4s, {0}));
  lease.answered(status_of(0), kBegin + 8s);
  CHECK(!lease.may_write(kBegin + 10s));
  REQUIRE(lease.next(kBegin + 9s, {0})->method == "GET");
  lease.answered(status_of(500), kBegin + 9s);
  REQUIRE(lease.next(kBegin + 20s, {0})->method == "GET");
  lease.answered(lease_of("me", "8"), kBegin + 20s);
  REQUIRE(lease.next(kBegin + 20s, {0})->method == "PUT");
  lease.answered(lease_of("me", "9"), kBegin + 20s);
  CHECK(lease.may_write(kBegin + 21s));
  REQUIRE(lease.next(kBegin + 24s, {0}));
  lease.answered(status_of(409), kBegin + 24s);
  REQUIRE(lease.next(kBegin + 24s, {0})->method == "GET");
  lease.answered(lease_of("thief", "11"), kBegin + 24s);
  REQUIRE(lease.lost());
  CHECK(lease.lost()->message.find("which this server had") != std::string::npos);
}

TEST_CASE("a refused call is told in the server's words") {
  Lease lease("ns", "berth", "me");
  REQUIRE(lease.next(kBegin, {0}));
  HttpAnswer denied = status_of(403);
  denied.body = R"({"kind":"Status","message":"leases is forbidden"})";
  lease.answered(denied, kBegin);
  CHECK(lease.failure() == "leases is forbidden");
  CHECK(!lease.held());
}

TEST_CASE("a lease that was given back has no holder, and is taken at once") {
  Lease lease("ns", "berth", "me");
  CHECK(!lease.give_back({0}));
  REQUIRE(lease.next(kBegin, {0}));
  lease.answered(status_of(404), kBegin);
  REQUIRE(lease.next(kBegin, {0}));
  lease.answered(lease_of("me", "7", 201), kBegin);
  const auto call = lease.give_back({0});
  REQUIRE(call);
  CHECK(call->method == "PUT");
  CHECK(call->body.find(R"("resourceVersion":"7")") != std::string::npos);
  CHECK(call->body.find(R"("holderIdentity":"")") != std::string::npos);
  CHECK(!lease.may_write(kBegin));
  Lease other("ns", "berth", "other");
  REQUIRE(other.next(kBegin, {0}));
  other.answered(lease_of("", "8"), kBegin);
  CHECK(other.next(kBegin, {0})->method == "PUT");
}
