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

}  // namespace
}  // namespace berth::daemon
