#include "daemon/access_table.h"

#include <doctest/doctest.h>

namespace berth::daemon {
namespace {

TEST_CASE("a token follows its queue when that is renamed, and does not fall to the next queue of the old name") {
  AccessTable access{state::State()};
  const std::string digest(64, 'a');
  access.on(TokenCreated{"ci", digest, Role::kMember, "lab/nlp", "ann", Timestamp::never(), "root"});
  REQUIRE(access.find(digest, Timestamp{1}));
  CHECK_EQ(access.find(digest, Timestamp{1})->roles.back().queue, "lab/nlp");
  ClusterConfigured renamed;
  renamed.moves = {{"lab", "research"}};
  access.on(renamed);
  CHECK_EQ(access.find(digest, Timestamp{1})->roles.back().queue, "research/nlp");
}

TEST_CASE("a user of an issuer has its roles and those of its groups, and nobody of another issuer has them") {
  AccessTable access{state::State()};
  ClusterConfigured configured;
  configured.config.roles = {{"group:corp:nlp", Role::kMember, "research/nlp"},
                             {"group:lab:nlp", Role::kLead, "research"},
                             {"user:corp:ada", Role::kViewer, ""}};
  access.on(configured);
  const policy::Subject ada = access.subject_of({.user = "corp:ada", .groups = {"corp:nlp", "corp:other"}});
  CHECK_EQ(ada.name, "user:corp:ada");
  CHECK_EQ(ada.user, "corp:ada");
  CHECK_EQ(ada.proof, "issuer");
  REQUIRE_EQ(ada.roles.size(), 2);
  CHECK_EQ(ada.roles[0].subject, "group:corp:nlp");
  CHECK_EQ(ada.roles[1].subject, "user:corp:ada");
  CHECK(access.subject_of({.user = "lab:ada", .groups = {}}).roles.empty());
  configured.config.roles.clear();
  access.on(configured);
  CHECK(access.subject_of({.user = "corp:ada", .groups = {"corp:nlp"}}).roles.empty());
}

}  // namespace
}  // namespace berth::daemon
