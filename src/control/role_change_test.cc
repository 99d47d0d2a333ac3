#include "control/role_change.h"

#include <doctest/doctest.h>

#include "control/hand_driven_fleet.h"

namespace berth::control {
namespace {

struct RoleFleet : HandDrivenFleet {
  ClusterConfig config = default_cluster_config();

  RoleFleet() {
    config.queues = {queue("research"), queue("research/nlp")};
    config.roles = {{"user:ada", Role::kAdmin, ""}, {"user:bob", Role::kOrgAdmin, "research"}};
    command(ApplyConfig{config, "berth serve"});
  }
  std::string refusal(const Command& one) {
    const auto reply = try_command(one);
    return reply ? "" : reply.error().message;
  }
  bool has(const RoleBinding& binding) const {
    const auto all = state.bindings();
    return std::find(all.begin(), all.end(), binding) != all.end();
  }
};

const RoleBinding kZoe{"user:zoe", Role::kMember, "research/nlp"};

// Its user has the same name.
void create_token(RoleFleet& fleet, const std::string& name, Role role) {
  TokenCreated token;
  token.name = name;
  token.digest = std::string(64, 'a');
  token.role = role;
  token.as_user = name;
  token.expires = fleet.now + 600'000;
  fleet.command(CreateToken{token});
}

}  // namespace

TEST_CASE("a role is granted and revoked by command, beside those of the file") {
  RoleFleet fleet;
  CHECK_FALSE(fleet.command(BindRole{kZoe, true, "user:bob"}).unchanged);
  CHECK(fleet.command(BindRole{kZoe, true, "user:bob"}).unchanged);
  CHECK(fleet.has(kZoe));
  CHECK(fleet.command(ApplyConfig{fleet.config, "op"}).unchanged);
  CHECK(fleet.has(kZoe));
  const auto loaded = state::State::load(fleet.state.save());
  REQUIRE(loaded.has_value());
  CHECK_EQ(loaded->digest(), fleet.state.digest());
  CHECK(loaded->granted() == fleet.state.granted());
  fleet.command(BindRole{kZoe, false, "user:bob"});
  CHECK_FALSE(fleet.has(kZoe));
  CHECK_EQ(fleet.refusal(BindRole{kZoe, false, "user:bob"}),
           "no role is granted to user:zoe as member at research/nlp");
  CHECK(fleet.refusal(BindRole{{"user:bob", Role::kOrgAdmin, "research"}, false, "user:ada"})
            .starts_with("the configuration file binds user:bob as org-admin at research"));
  CHECK(fleet.refusal(BindRole{{"zoe", Role::kMember, "research"}, true, "user:ada"}).find("user:NAME") !=
        std::string::npos);
  CHECK(fleet.refusal(BindRole{{"user:zoe", Role::kMember, "sales"}, true, "user:ada"}).starts_with("no such queue"));
}

TEST_CASE("a change that would leave nobody able to administer is refused") {
  RoleFleet fleet;
  const std::string refused = "that would leave nobody able to administer";
  CHECK(fleet.refusal(BlockSubject{"user:ada", true, "user:ada"}).starts_with(refused));
  ClusterConfig without = fleet.config;
  without.roles.erase(without.roles.begin());
  CHECK(fleet.refusal(ApplyConfig{without, "user:ada"}).starts_with(refused));
  const RoleBinding second{"group:corp:ops", Role::kAdmin, ""};
  fleet.command(BindRole{second, true, "user:ada"});
  CHECK_EQ(fleet.refusal(ApplyConfig{without, "user:ada"}), "");
  CHECK(fleet.refusal(BindRole{second, false, "user:ada"}).starts_with(refused));
  create_token(fleet, "root", Role::kAdmin);
  CHECK(fleet.refusal(BlockSubject{"token:root", true, "user:ada"}).empty());
  CHECK(fleet.refusal(BindRole{second, false, "user:ada"}).starts_with(refused));
  fleet.command(BlockSubject{"token:root", false, "user:ada"});
  CHECK_EQ(fleet.refusal(BindRole{second, false, "user:ada"}), "");
}

TEST_CASE("the last token that can administer is revoked by the token in the data directory alone") {
  RoleFleet fleet;
  fleet.config.roles = {{"user:bob", Role::kOrgAdmin, "research"}};
  fleet.command(ApplyConfig{fleet.config, "berth serve"});
  const auto create = [&](const std::string& name, Role role, char digit) {
    TokenCreated token;
    token.name = name;
    token.digest = std::string(64, digit);
    token.role = role;
    token.as_user = name;
    token.expires = fleet.now + 600'000;
    fleet.command(CreateToken{token});
  };
  create("boss", Role::kAdmin, 'b');
  create("viewer", Role::kViewer, 'c');
  CHECK_EQ(fleet.refusal(RevokeToken{"viewer", "token:boss"}), "");
  CHECK(fleet.refusal(RevokeToken{"boss", "token:boss"}).starts_with("that would leave nobody able to administer"));
  create("second", Role::kAdmin, 'd');
  CHECK_EQ(fleet.refusal(RevokeToken{"second", "token:boss"}), "");
  fleet.command(BindRole{{"token:boss", Role::kAdmin, ""}, true, "admin"});  // that is its role no longer without it
  CHECK_FALSE(fleet.refusal(RevokeToken{"boss", "token:boss"}).empty());
  fleet.command(BindRole{{"user:ada", Role::kAdmin, ""}, true, "admin"});
  CHECK_EQ(fleet.refusal(RevokeToken{"boss", "token:boss"}), "");
  create("boss", Role::kAdmin, 'b');
  fleet.command(BlockSubject{"user:ada", true, "admin"});
  CHECK_FALSE(fleet.refusal(RevokeToken{"boss", "token:boss"}).empty());
  CHECK_EQ(fleet.refusal(RevokeToken{"boss", "admin"}), "");
}

TEST_CASE("subjects that no request can come from do not count as administrators, and a group of nobody gets no role") {
  RoleFleet fleet;
  const RoleBinding ghosts{"group:ghosts", Role::kAdmin, ""};
  const RoleBinding away{"token:away", Role::kAdmin, ""};
  ClusterConfig config = fleet.config;
  config.roles = {{"user:ada", Role::kAdmin, ""}, ghosts};
  CHECK(fleet.refusal(ApplyConfig{config, "user:ada"}).find("nobody is ever in this group") != std::string::npos);
  CHECK(fleet.refusal(BindRole{ghosts, true, "user:ada"}).find("group:ISSUER:NAME") != std::string::npos);
  // As a log of an earlier release may have them.
  Batch earlier(fleet.state, fleet.now);
  for (const RoleBinding& binding : {ghosts, away}) earlier.emit(RoleBound{binding, true, "user:ada"});
  const std::string refused = "that would leave nobody able to administer";
  CHECK(fleet.refusal(BlockSubject{"user:ada", true, "user:ada"}).starts_with(refused));
  ClusterConfig without = fleet.config;
  without.roles.clear();
  CHECK(fleet.refusal(ApplyConfig{without, "user:ada"}).starts_with(refused));
  CHECK_EQ(fleet.refusal(BindRole{ghosts, false, "user:ada"}), "");  // it can be taken away again
  create_token(fleet, "away", Role::kViewer);
  CHECK_EQ(fleet.refusal(ApplyConfig{without, "user:ada"}), "");  // the token has the role by its binding
  CHECK(fleet.refusal(RevokeToken{"away", "token:away"}).starts_with(refused));
}

TEST_CASE("the access of a subject is ended and lifted again; its roles stay bound meanwhile") {
  RoleFleet fleet;
  fleet.command(BindRole{kZoe, true, "user:bob"});
  fleet.command(BlockSubject{"user:zoe", true, "user:ada"});
  CHECK(fleet.command(BlockSubject{"user:zoe", true, "user:ada"}).unchanged);
  CHECK_FALSE(fleet.has(kZoe));
  CHECK(fleet.state.granted().contains(kZoe));
  const auto loaded = state::State::load(fleet.state.save());
  REQUIRE(loaded.has_value());
  CHECK(loaded->blocked() == fleet.state.blocked());
  fleet.command(BlockSubject{"user:zoe", false, "user:ada"});
  CHECK(fleet.has(kZoe));
}

}  // namespace berth::control
