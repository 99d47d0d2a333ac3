#include "api/http/gate.h"

#include <doctest/doctest.h>

#include <string>
#include <variant>
#include <vector>

#include "api/http/authenticator.h"
#include "api/http/dispatch.h"

namespace berth::http {
namespace {

constexpr std::string_view kOwnToken = "0123456789abcdef0123456789abcdef";

// A door to which each request comes from 10.2.0.7: with berth's own token, a signed one, the cookie of a session, or
// nothing. Tells what the gate was told.
struct Door {
  Authenticator authenticator;
  Router router;
  std::vector<std::string> told;
  std::int64_t wait_ms = 0;

  Door() {
    add("/v1/thing", "getThing", Access::kToken);
    add("/healthz", "getHealth", Access::kPublic);
    REQUIRE(authenticator.add(kOwnToken, {.name = "token:ci", .user = "ci"}));
    authenticator.verify_signed_by([](std::string_view token, const TokenDigest&) {
      if (token != "head.ada.signature") return Identification{.refusal = "the token has expired"};
      return Identification{.subject =
                                policy::Subject{.name = "user:corp:ada", .user = "corp:ada", .proof = kByIssuer}};
    });
    authenticator.look_up_sessions_by([](std::string_view cookies) {
      if (cookies != "berth_session=s1") return Identification{};
      return Identification{
          .subject = policy::Subject{.name = "user:corp:bob", .user = "corp:bob", .proof = kBySession},
          .change_token = "change-1"};
    });
  }

  void add(const char* pattern, const char* operation, Access access) {
    router.add({.method = Method::kGet,
                .pattern = pattern,
                .access = access,
                .doc = {.operation_id = operation,
                        .summary = "Of the test.",
                        .responses = {{.status = 200, .description = "It is there."}}},
                .handler = [](const Request&, const Responder&) {}});
  }

  Gate gate() {
    return {.take = [this](const std::string&, const std::string&) { return wait_ms; },
            .unauthenticated = [this](const std::string& address) { told.push_back("nobody from " + address); },
            .signed_in =
                [this](const policy::Subject& subject, const std::string& session, const std::string& address) {
                  told.push_back(subject.name + " by " + std::string(subject.proof) +
                                 (session.empty() ? "" : " in a session") + " from " + address);
                }};
  }

  // Returns the status of the refusal; 0: the request was let in.
  int ask(std::vector<Header> headers, std::string_view target = "/v1/thing") {
    told.clear();
    const Peer peer{.address = "10.2.0.7:40112"};
    auto decision =
        admit({.method = "GET", .target = target, .headers = std::move(headers)}, router, authenticator, peer, gate());
    const auto* refusal = std::get_if<Response>(&decision);
    return refusal == nullptr ? 0 : refusal->status;
  }
  static Header bearer(const std::string& token) { return {"authorization", "Bearer " + token}; }
};

using Told = std::vector<std::string>;

TEST_CASE("the gate is told of each request that an identity provider proves, by its token or its session") {
  Door door;
  CHECK_EQ(door.ask({Door::bearer("head.ada.signature")}), 0);
  CHECK(door.told == Told{"user:corp:ada by issuer from 10.2.0.7"});
  CHECK_EQ(door.ask({{"cookie", "berth_session=s1"}}), 0);
  CHECK(door.told == Told{"user:corp:bob by session in a session from 10.2.0.7"});
  CHECK_EQ(door.ask({Door::bearer(std::string(kOwnToken))}), 0);  // berth's own tokens have no sign-in
  CHECK(door.told.empty());
}

TEST_CASE("the gate is told once of each request that proves nobody, and of its address") {
  Door door;
  for (const std::vector<Header>& headers : {std::vector<Header>{},
                                             {Door::bearer("head.eve.signature")},
                                             {Door::bearer("no-token-of-this-server")},
                                             {{"cookie", "berth_session=made-up"}}}) {
    CHECK_EQ(door.ask(headers), 401);
    CHECK(door.told == Told{"nobody from 10.2.0.7"});
  }
  CHECK_EQ(door.ask({}, "/healthz"), 0);  // needs no proof
  CHECK(door.told.empty());
}

TEST_CASE("a request that has to wait is told of no sign-in that failed, and another site's of none at all") {
  Door door;
  door.wait_ms = 1500;
  CHECK_EQ(door.ask({Door::bearer("head.eve.signature")}), 429);
  CHECK(door.told.empty());
  door.wait_ms = 0;
  CHECK_EQ(door.ask({{"cookie", "berth_session=s1"}, {"sec-fetch-site", "cross-site"}}), 403);
  CHECK(door.told.empty());
}

TEST_CASE("an address counts without its port, and of IPv6 its first 64 bits") {
  CHECK_EQ(address_of("10.2.0.7:40112"), "10.2.0.7");
  CHECK_EQ(address_of("[2001:db8::17]:40112"), "2001:db8::");
  CHECK_EQ(address_of("[::1]:5"), "::1");
  CHECK_EQ(address_of("unix"), "unix");
}

}  // namespace
}  // namespace berth::http
