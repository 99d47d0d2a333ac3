#include "control/handle.h"

#include <doctest/doctest.h>

#include <string>

#include "model/cluster_config.h"

namespace berth::control {
namespace {

// As many queues as one configuration may have, with new names each time; each in a trust domain of its own if asked.
ClusterConfig many_queues(int generation, bool domains) {
  ClusterConfig config = default_cluster_config();
  config.queues.clear();
  for (int i = 0; i < 20'000; ++i) {
    QueueConfig queue;
    queue.path = "g" + std::to_string(generation) + "-" + std::to_string(i);
    // Names of unlike lengths are told apart at a glance, and there are many to compare.
    if (domains) queue.trust_domain = std::string(static_cast<std::size_t>(1 + i % 50), 'd') + queue.path;
    config.queues.push_back(queue);
  }
  return config;
}

Result<Reply> apply(state::State& state, const ClusterConfig& config) {
  Batch batch(state, Timestamp{1000});
  return handle(batch, ApplyConfig{config, "op"});
}

TEST_CASE("trust domains keep their ids for ever, and a configuration that would run out of them is refused") {
  state::State state;
  const ClusterConfig first = many_queues(0, true);
  REQUIRE(apply(state, first));
  REQUIRE(apply(state, many_queues(1, true)));
  REQUIRE(apply(state, many_queues(2, true)));
  const auto refused = apply(state, many_queues(3, true));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kInvalid);
  CHECK(refused.error().message.find("65535 is the most there can ever be") != std::string::npos);
  CHECK(state.config() == many_queues(2, true));
  CHECK(apply(state, first));  // names that were used before need no new ids
}

TEST_CASE("a configuration that would bring more queues than there can ever be is refused") {
  state::State state;
  int generation = 0;
  while (generation < 20 && apply(state, many_queues(generation, false))) ++generation;
  CHECK(generation == 9);  // the root is a queue, too
  CHECK(apply(state, many_queues(0, false)));
}

}  // namespace
}  // namespace berth::control
