#include "policy/recent_sign_ins.h"

#include <doctest/doctest.h>

namespace berth::policy {
namespace {

SignedIn sign_in_of(const char* subject, const char* proof = "issuer") { return {subject, proof, "10.0.0.1"}; }

TEST_CASE("a subject signs in with its first token, and again after a long time without any") {
  RecentSignIns sign_ins;
  const Timestamp begin{1'000'000'000};
  for (int minute = 0; minute < 24 * 60; ++minute)
    sign_ins.seen(sign_in_of("user:corp:ada"), "", begin + minute * 60'000);
  CHECK_EQ(sign_ins.take().size(), 1);
  const Timestamp last = begin + (24 * 60 - 1) * 60'000;
  sign_ins.seen(sign_in_of("user:corp:ada"), "", last + (RecentSignIns::kQuietMs - 1));
  CHECK(sign_ins.take().empty());
  sign_ins.seen(sign_in_of("user:corp:ada"), "", last + (2 * RecentSignIns::kQuietMs - 1));
  CHECK_EQ(sign_ins.take().size(), 1);
}

TEST_CASE("each session of the web page is one sign-in, beside that of signed tokens") {
  RecentSignIns sign_ins;
  for (const char* session : {"one", "two", "one", "two"})
    sign_ins.seen(sign_in_of("user:corp:ada", "session"), session, Timestamp{1000});
  sign_ins.seen(sign_in_of("user:corp:ada"), "", Timestamp{1000});
  const auto fresh = sign_ins.take();
  REQUIRE_EQ(fresh.size(), 3);
  CHECK_EQ(fresh[0].proof, "session");
  CHECK_EQ(fresh[2].proof, "issuer");
}

TEST_CASE("sign-ins are kept in bounded memory, and none that does not fit is lost") {
  RecentSignIns sign_ins(3);
  for (std::size_t i = 0; i < RecentSignIns::kMostWaiting + 1; ++i)
    sign_ins.seen(sign_in_of(("user:" + std::to_string(i)).c_str()), "", Timestamp{1000});
  CHECK_EQ(sign_ins.take().size(), RecentSignIns::kMostWaiting);
  sign_ins.seen(sign_in_of(("user:" + std::to_string(RecentSignIns::kMostWaiting)).c_str()), "", Timestamp{1001});
  CHECK_EQ(sign_ins.take().size(), 1);
}

}  // namespace
}  // namespace berth::policy
