#include "daemon/token_uses.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace berth::daemon {
namespace {

struct UsesDirectory {
  std::string path = "/tmp/berth-token-uses-" + std::to_string(::getpid());
  UsesDirectory() { std::filesystem::create_directory(path); }
  ~UsesDirectory() { std::filesystem::remove_all(path); }
  UsesDirectory(const UsesDirectory&) = delete;
  UsesDirectory& operator=(const UsesDirectory&) = delete;
};

const std::string kOne(64, 'a');
const std::string kTwo(64, 'b');

void create_tokens(AccessTable& access) {
  access.on(TokenCreated{"one", kOne, Role::kMember, "lab", "ann", Timestamp::never(), "root"});
  access.on(TokenCreated{"two", kTwo, Role::kMember, "lab", "bob", Timestamp{5'000}, "root"});
}

}  // namespace

TEST_CASE("the last use of a token is that of a good request, and is known after a restart") {
  const UsesDirectory directory;
  {
    AccessTable access{state::State()};
    create_tokens(access);
    const TokenUses uses(directory.path, access);
    REQUIRE(access.find(kOne, Timestamp{2'000}));
    REQUIRE(access.find(kOne, Timestamp{1'000}));  // a request that waited
    CHECK_FALSE(access.find(kTwo, Timestamp{6'000}));
    CHECK(access.uses() == AccessTable::Uses{{kOne, Timestamp{2'000}}});
  }
  CHECK_EQ(std::filesystem::status(directory.path + "/token-uses.json").permissions(),
           std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  AccessTable access{state::State()};
  create_tokens(access);
  TokenUses uses(directory.path, access);
  CHECK(access.uses() == AccessTable::Uses{{kOne, Timestamp{2'000}}});
  REQUIRE(access.find(kTwo, Timestamp{4'000}));
  uses.save();
  AccessTable third{state::State()};
  create_tokens(third);
  const TokenUses again(directory.path, third);
  CHECK(third.uses() == access.uses());
  third.on(TokenRevoked{"one", "root"});
  CHECK(third.uses() == AccessTable::Uses{{kTwo, Timestamp{4'000}}});
  third.on(TokenCreated{"one", std::string(64, 'c'), Role::kMember, "lab", "ann", Timestamp::never(), "root"});
  CHECK_EQ(third.uses().size(), 1);  // a new token of the name has not been used
}

TEST_CASE("a damaged file of uses costs the dates and nothing else") {
  const UsesDirectory directory;
  for (const char* text : {"", "[", "[]", R"({"a":1,"b":"yesterday"})"}) {
    std::ofstream(directory.path + "/token-uses.json", std::ios::trunc) << text;
    AccessTable access{state::State()};
    create_tokens(access);
    const TokenUses uses(directory.path, access);
    CHECK(access.uses().empty());
    CHECK(access.find(kOne, Timestamp{1}));
  }
}

}  // namespace berth::daemon
