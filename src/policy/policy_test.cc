#include <doctest/doctest.h>

#include <array>
#include <fstream>
#include <span>
#include <sstream>

#include "policy/authorize.h"

namespace berth::policy {
namespace {

// user:ada, of group:nlp, by these bindings.
Subject ada(std::span<const RoleBinding> bindings = {}) {
  const std::array<std::string, 1> groups{"group:nlp"};
  return {.name = "user:ada", .user = "ada", .roles = roles_of(bindings, "user:ada", groups)};
}

TEST_CASE("what no binding allows is denied, and the least role that would is named") {
  const Decision denied = authorize(ada(), Verb::kStopJob, {"research/nlp", "bob"});
  CHECK_FALSE(denied.allowed);
  CHECK_FALSE(denied.by);
  CHECK(denied.needs == Role::kLead);
  CHECK(authorize(ada(), Verb::kStopJob, {"research/nlp", "ada"}).needs == Role::kMember);
  CHECK(authorize(ada(), Verb::kManageNodes, {}).needs == Role::kOperator);
}

TEST_CASE("a binding holds at its queue and below it, and nowhere else") {
  const std::array bindings{RoleBinding{"user:ada", Role::kLead, "research/nlp"}};
  CHECK(authorize(ada(bindings), Verb::kStopJob, {"research/nlp", "bob"}).allowed);
  CHECK(authorize(ada(bindings), Verb::kStopJob, {"research/nlp/train", "bob"}).allowed);
  CHECK_FALSE(authorize(ada(bindings), Verb::kStopJob, {"research", "bob"}).allowed);
  CHECK_FALSE(authorize(ada(bindings), Verb::kStopJob, {"research/nlp2", "bob"}).allowed);
  CHECK_FALSE(authorize(ada(bindings), Verb::kStopJob, {"", "bob"}).allowed);
}

TEST_CASE("a member reaches what belongs to it; no subject without a user owns anything") {
  const std::array bindings{RoleBinding{"group:nlp", Role::kMember, ""}, RoleBinding{"token:ci", Role::kMember, ""}};
  CHECK(authorize(ada(bindings), Verb::kSeeJob, {"a", "ada"}).allowed);
  CHECK_FALSE(authorize(ada(bindings), Verb::kSeeJob, {"a", "bob"}).allowed);
  CHECK_FALSE(
      authorize({.name = "token:ci", .roles = roles_of(bindings, "token:ci")}, Verb::kSeeJob, {"a", ""}).allowed);
  CHECK(reach_anywhere(ada(bindings), Verb::kSeeJob) == Reach::kOwn);
  CHECK(reach_anywhere(ada(bindings), Verb::kSeeNodes) == Reach::kNone);
}

TEST_CASE("names are compared whole: no prefix, no other kind") {
  const std::array bindings{RoleBinding{"user:ad", Role::kAdmin, ""}, RoleBinding{"token:ada", Role::kAdmin, ""},
                            RoleBinding{"group:user:ada", Role::kAdmin, ""}, RoleBinding{"", Role::kAdmin, ""}};
  CHECK_FALSE(authorize(ada(bindings), Verb::kSeeQueue, {}).allowed);
  CHECK_FALSE(authorize({.name = "", .roles = roles_of(bindings, "")}, Verb::kSeeQueue, {}).allowed);
}

TEST_CASE("a running job may see itself and report its checkpoints, whatever roles it is given") {
  for (std::size_t v = 0; v < EnumNames<Verb>::kNames.size(); ++v) {
    const auto verb = static_cast<Verb>(v);
    CAPTURE(name_of(verb));
    const Subject job{.name = "job:7", .user = "ada", .roles = {{"job:7", Role::kAdmin, ""}}, .job = JobId(7)};
    const bool own = verb == Verb::kSeeJob || verb == Verb::kReportCheckpoint;
    CHECK(authorize(job, verb, {"a", "ada", JobId(7)}).allowed == own);
    CHECK_FALSE(authorize(job, verb, {"a", "ada", JobId(8)}).allowed);
    CHECK_FALSE(authorize(job, verb, {"a", "ada"}).allowed);
    CHECK_FALSE(authorize(job, verb, {}).needs);
  }
}

TEST_CASE("a token for saves reports those of its own job, and does not even see it") {
  for (std::size_t v = 0; v < EnumNames<Verb>::kNames.size(); ++v) {
    const auto verb = static_cast<Verb>(v);
    CAPTURE(name_of(verb));
    const Subject saves{.name = "job:7", .job = JobId(7), .saves_only = true};
    CHECK(authorize(saves, verb, {"a", "ada", JobId(7)}).allowed == (verb == Verb::kReportCheckpoint));
    CHECK_FALSE(authorize(saves, verb, {"a", "ada", JobId(8)}).allowed);
  }
}

// Every role, verb, relation of the two queues and of the owner, against the rule written the other way round.
TEST_CASE("the whole matrix: allowed is exactly what some role has there") {
  const std::array<std::string_view, 5> queues{"", "a", "a/b", "a/b/c", "ab"};
  std::size_t allowed = 0;
  for (std::size_t r = 0; r < EnumNames<Role>::kNames.size(); ++r) {
    for (std::size_t v = 0; v < EnumNames<Verb>::kNames.size(); ++v) {
      for (const std::string_view at : queues) {
        for (const std::string_view of : queues) {
          for (const std::string_view owner : {"", "ada", "bob"}) {
            const auto role = static_cast<Role>(r);
            const auto verb = static_cast<Verb>(v);
            const std::array bindings{RoleBinding{"user:ada", role, std::string(at)}};
            const bool below = at.empty() || of == at || of.substr(0, at.size() + 1) == std::string(at) + "/";
            const Reach reach = reach_of(role, verb);
            const bool expected = below && (reach == Reach::kAll || (reach == Reach::kOwn && owner == "ada"));
            const Decision decision = authorize(ada(bindings), verb, {of, owner});
            REQUIRE(decision.allowed == expected);
            REQUIRE(decision.by.has_value() == expected);
            allowed += expected ? 1 : 0;
          }
        }
      }
    }
  }
  CHECK(allowed > 1000);
}

TEST_CASE("docs/roles.md has the table") {
  std::ifstream file("docs/roles.md");
  std::stringstream text;
  text << file.rdbuf();
  const std::string page = text.str();
  for (std::size_t v = 0; v < EnumNames<Verb>::kNames.size(); ++v) {
    const std::string opening = "\n| " + std::string(EnumNames<Verb>::kNames[v]) + " | ";
    CAPTURE(opening);
    const std::size_t row = page.find(opening);
    REQUIRE(row != std::string::npos);
    std::string cells;
    for (std::size_t r = 0; r < EnumNames<Role>::kNames.size(); ++r) {
      const Reach reach = reach_of(static_cast<Role>(r), static_cast<Verb>(v));
      cells += std::string(" | ") + (reach == Reach::kNone ? "-" : reach == Reach::kOwn ? "own" : "all");
    }
    const std::string line = page.substr(row + 1, page.find('\n', row + 1) - row - 1);
    CHECK(line.ends_with(cells + " |"));
  }
}

TEST_CASE("an admin may do everything; no other role may change the configuration or tokens") {
  for (std::size_t v = 0; v < EnumNames<Verb>::kNames.size(); ++v)
    CHECK(reach_of(Role::kAdmin, static_cast<Verb>(v)) == Reach::kAll);
  for (std::size_t r = 0; r < EnumNames<Role>::kNames.size(); ++r) {
    if (static_cast<Role>(r) == Role::kAdmin) continue;
    CHECK(reach_of(static_cast<Role>(r), Verb::kChangeConfig) == Reach::kNone);
    CHECK(reach_of(static_cast<Role>(r), Verb::kManageTokens) == Reach::kNone);
  }
}

TEST_CASE("the role metrics reads the metrics, and has nothing else") {
  for (std::size_t v = 0; v < EnumNames<Verb>::kNames.size(); ++v) {
    const auto verb = static_cast<Verb>(v);
    CHECK(reach_of(Role::kMetrics, verb) == (verb == Verb::kSeeMetrics ? Reach::kAll : Reach::kNone));
  }
  CHECK(authorize(ada({}), Verb::kSeeMetrics, {}).needs == Role::kMetrics);  // the least that a scraper needs
  CHECK_FALSE(may_bind({.name = "user:ada", .roles = {{"user:ada", Role::kOrgAdmin, "a"}}},
                       {"token:prometheus", Role::kMetrics, "a"}));
}

TEST_CASE("nobody grants more than the own role, or beside the own queue") {
  const std::array lead{RoleBinding{"user:ada", Role::kLead, "research"}};
  const std::array org_admin{RoleBinding{"user:ada", Role::kOrgAdmin, "research"}};
  const std::array admin{RoleBinding{"user:ada", Role::kAdmin, ""}};
  const std::array finance{RoleBinding{"user:ada", Role::kFinance, ""}};
  const auto may = [](std::span<const RoleBinding> roles, Role role, const char* queue) {
    return may_bind(ada(roles), {"user:bob", role, queue});
  };
  CHECK(may(lead, Role::kMember, "research/nlp"));
  CHECK_FALSE(may(lead, Role::kLead, "research/nlp"));
  CHECK_FALSE(may(lead, Role::kMember, "researchers"));
  CHECK_FALSE(may(lead, Role::kMember, ""));
  CHECK(may(org_admin, Role::kOrgAdmin, "research"));
  CHECK_FALSE(may(org_admin, Role::kOperator, "research"));
  CHECK_FALSE(may(org_admin, Role::kAdmin, "research/nlp"));
  CHECK_FALSE(may(org_admin, Role::kViewer, ""));
  CHECK_FALSE(may(finance, Role::kViewer, "research"));
  CHECK(may(admin, Role::kAdmin, ""));
  const std::array whole{RoleBinding{"user:ada", Role::kOrgAdmin, ""}};
  CHECK(may(whole, Role::kFinance, "research"));
  CHECK_FALSE(may(whole, Role::kFinance, ""));
  // A role never grants one with a verb that it lacks itself, but for what members do with jobs of their own.
  for (std::size_t granter = 0; granter < EnumNames<Role>::kNames.size(); ++granter) {
    for (std::size_t granted = 0; granted < EnumNames<Role>::kNames.size(); ++granted) {
      if (!may_grant(static_cast<Role>(granter), static_cast<Role>(granted))) continue;
      CHECK(reach_of(static_cast<Role>(granter), Verb::kManageRoles) == Reach::kAll);
      for (const Verb verb : {Verb::kChangeConfig, Verb::kManageTokens, Verb::kManageNodes, Verb::kChangeQueue}) {
        CHECK(reach_of(static_cast<Role>(granted), verb) <= reach_of(static_cast<Role>(granter), verb));
      }
    }
  }
}

}  // namespace
}  // namespace berth::policy
