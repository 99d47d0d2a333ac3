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

TEST_CASE("a job is a subject while its attempt runs, and has no roles") {
  AccessTable access{state::State()};
  AttemptStarted started;
  started.job = JobId(7);
  started.attempt = 2;
  CHECK_FALSE(access.subject_of(JobId(7), 2));
  access.on(started);
  REQUIRE(access.subject_of(JobId(7), 2));
  CHECK_EQ(access.subject_of(JobId(7), 2)->name, "job:7");
  CHECK(access.subject_of(JobId(7), 2)->job == JobId(7));
  CHECK(access.subject_of(JobId(7), 2)->roles.empty());
  CHECK_FALSE(access.subject_of(JobId(7), 1));
  CHECK_FALSE(access.subject_of(JobId(8), 2));
  access.on(AttemptEnded{JobId(7), 2, Outcome::kSucceeded, 0, {}});
  CHECK_FALSE(access.subject_of(JobId(7), 2));
}

identity::Identity identity_of(std::string user, std::vector<std::string> groups) {
  identity::Identity identity;
  identity.user = std::move(user);
  identity.groups = std::move(groups);
  return identity;
}

TEST_CASE("a user of an issuer has its roles and those of its groups, and nobody of another issuer has them") {
  AccessTable access{state::State()};
  ClusterConfigured configured;
  configured.config.roles = {{"group:corp:nlp", Role::kMember, "research/nlp"},
                             {"group:lab:nlp", Role::kLead, "research"},
                             {"user:corp:ada", Role::kViewer, ""}};
  access.on(configured);
  const policy::Subject ada = access.subject_of(identity_of("corp:ada", {"corp:nlp", "corp:other"})).value();
  CHECK_EQ(ada.name, "user:corp:ada");
  CHECK_EQ(ada.user, "corp:ada");
  CHECK_EQ(ada.proof, "issuer");
  REQUIRE_EQ(ada.roles.size(), 2);
  CHECK_EQ(ada.roles[0].subject, "group:corp:nlp");
  CHECK_EQ(ada.roles[1].subject, "user:corp:ada");
  CHECK(access.subject_of(identity_of("lab:ada", {}))->roles.empty());
  configured.config.roles.clear();
  access.on(configured);
  CHECK(access.subject_of(identity_of("corp:ada", {"corp:nlp"}))->roles.empty());
}

TEST_CASE("a role that is granted holds at once, follows its queue, and ends with it") {
  AccessTable access{state::State()};
  const auto roles = [&] { return access.roles_of("user:ada"); };
  access.on(RoleBound{{"user:ada", Role::kLead, "lab/nlp"}, true, "root"});
  REQUIRE_EQ(roles().size(), 1);
  ClusterConfigured renamed;
  renamed.config.queues.resize(2);
  renamed.config.queues[0].path = "research";
  renamed.config.queues[1].path = "research/nlp";
  renamed.moves = {{"lab", "research"}};
  access.on(renamed);
  REQUIRE_EQ(roles().size(), 1);
  CHECK_EQ(roles().front().queue, "research/nlp");
  access.on(RoleBound{{"user:ada", Role::kViewer, ""}, true, "root"});
  renamed.config.queues.pop_back();
  renamed.moves.clear();
  access.on(renamed);
  REQUIRE_EQ(roles().size(), 1);
  CHECK_EQ(roles().front().role, Role::kViewer);
  access.on(RoleBound{{"user:ada", Role::kViewer, ""}, false, "root"});
  CHECK(roles().empty());
}

TEST_CASE("a subject whose access is ended is nobody, by each of its tokens and by a group, until that is lifted") {
  AccessTable access{state::State()};
  const std::string digest(64, 'a');
  access.on(TokenCreated{"ci", digest, Role::kMember, "lab", "ada", Timestamp::never(), "root"});
  const auto comes_in = [&] { return access.find(digest, Timestamp{1}).has_value(); };
  for (const char* subject : {"token:ci", "user:ada"}) {
    access.on(SubjectBlocked{subject, true, "root"});
    CHECK_FALSE(comes_in());
    CHECK(access.is_blocked(subject));
    access.on(SubjectBlocked{subject, false, "root"});
    CHECK(comes_in());
  }
  access.on(SubjectBlocked{"group:corp:nlp", true, "root"});
  CHECK_FALSE(access.subject_of(identity_of("corp:ada", {"corp:nlp"})));
  CHECK(access.subject_of(identity_of("corp:ada", {"corp:other"})));
  access.on(SubjectBlocked{"user:corp:ada", true, "root"});
  CHECK_FALSE(access.subject_of(identity_of("corp:ada", {"corp:other"})));
  CHECK(comes_in());
}

}  // namespace
}  // namespace berth::daemon
