#include "daemon/page_sessions.h"

#include <doctest/doctest.h>

namespace berth::daemon {
namespace {

constexpr std::int64_t kMinute = 60'000;

identity::Identity identity_until(std::string user, std::int64_t ends_ms) {
  return {.user = std::move(user), .groups = {}, .issuer = "corp", .ends = Timestamp{ends_ms}};
}

TEST_CASE("a session is good until its ID token ends, and found by its own digest alone") {
  PageSessions sessions;
  sessions.begin("a", {identity_until("corp:ada", 60 * kMinute), "change"}, "", Timestamp{0});
  CHECK_EQ(sessions.find("a", Timestamp{1}).known->change_token, "change");
  CHECK_FALSE(sessions.find("b", Timestamp{1}).known);
  CHECK(sessions.find("a", Timestamp{60 * kMinute - 1}).known);
  CHECK_FALSE(sessions.find("a", Timestamp{60 * kMinute}).known);
  CHECK_EQ(sessions.size(), 0);
}

TEST_CASE("a session ends when nothing was asked for two hours, and twelve hours after its begin whatever is asked") {
  PageSessions sessions;
  const auto begin = [&] {
    sessions.begin("a", {identity_until("corp:ada", 100 * PageSessions::kLongestMs), "x"}, "", Timestamp{0});
  };
  begin();
  CHECK_FALSE(sessions.find("a", Timestamp{PageSessions::kIdleMs}).known);
  begin();
  for (std::int64_t at = 0; at < PageSessions::kLongestMs; at += kMinute)
    REQUIRE(sessions.find("a", Timestamp{at}).known);
  CHECK_FALSE(sessions.find("a", Timestamp{PageSessions::kLongestMs}).known);
}

TEST_CASE("the issuer is asked anew every five minutes, once, and its refusal ends the session") {
  PageSessions sessions;
  sessions.begin("a", {identity_until("corp:ada", 60 * kMinute), "x"}, "r1", Timestamp{0});
  CHECK_EQ(sessions.find("a", Timestamp{kMinute}).refresh_token, "");
  CHECK_EQ(sessions.find("a", Timestamp{5 * kMinute}).refresh_token, "r1");
  CHECK_EQ(sessions.find("a", Timestamp{6 * kMinute}).refresh_token, "");  // it is being asked
  sessions.renewed("a", identity_until("corp:ada", 65 * kMinute), "r2", false, Timestamp{6 * kMinute});
  CHECK_EQ(sessions.find("a", Timestamp{12 * kMinute}).refresh_token, "r2");
  sessions.renewed("a", std::nullopt, "", false, Timestamp{12 * kMinute});  // it is away
  CHECK(sessions.find("a", Timestamp{13 * kMinute}).known);
  CHECK_EQ(sessions.find("a", Timestamp{18 * kMinute}).refresh_token, "r2");
  sessions.renewed("a", std::nullopt, "", true, Timestamp{18 * kMinute});
  CHECK_FALSE(sessions.find("a", Timestamp{18 * kMinute}).known);
}

TEST_CASE("a session is not renewed for another person") {
  PageSessions sessions;
  sessions.begin("a", {identity_until("corp:ada", 60 * kMinute), "x"}, "r1", Timestamp{0});
  sessions.renewed("a", identity_until("corp:bob", 65 * kMinute), "r2", false, Timestamp{1});
  CHECK_FALSE(sessions.find("a", Timestamp{2}).known);
}

TEST_CASE("a request after the end of the ID token waits for the issuer, and is called back once") {
  PageSessions sessions;
  sessions.begin("a", {identity_until("corp:ada", kMinute), "x"}, "r1", Timestamp{0});
  const auto found = sessions.find("a", Timestamp{kMinute});
  CHECK_FALSE(found.known);
  CHECK(found.renewing);
  int called = 0;
  sessions.when_renewed("a", [&] { ++called; });
  CHECK_EQ(called, 0);
  sessions.renewed("a", identity_until("corp:ada", 9 * kMinute), "", false, Timestamp{kMinute + 1});
  CHECK_EQ(called, 1);
  CHECK(sessions.find("a", Timestamp{kMinute + 2}).known);
  sessions.when_renewed("a", [&] { ++called; });
  CHECK_EQ(called, 2);
}

TEST_CASE("a user has twenty sessions; the one that was used least recently ends") {
  PageSessions sessions;
  const auto digest = [](std::size_t i) { return "s" + std::to_string(i); };
  sessions.begin("bob", {identity_until("corp:bob", 60 * kMinute), "x"}, "", Timestamp{0});
  for (std::size_t i = 0; i < PageSessions::kMostOfUser; ++i)
    sessions.begin(digest(i), {identity_until("corp:ada", 60 * kMinute), "x"}, "", Timestamp{1});
  CHECK(sessions.find("s0", Timestamp{2}).known);
  sessions.begin("new", {identity_until("corp:ada", 60 * kMinute), "x"}, "", Timestamp{3});
  CHECK(sessions.find("s0", Timestamp{4}).known);
  CHECK(sessions.find("bob", Timestamp{4}).known);
  CHECK_FALSE(sessions.find("s1", Timestamp{4}).known);
  CHECK_EQ(sessions.size(), PageSessions::kMostOfUser + 1);
}

}  // namespace
}  // namespace berth::daemon
