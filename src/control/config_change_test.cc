#include "control/config_change.h"

#include "control/hand_driven_fleet.h"

namespace berth::control {
namespace {

using Fleet = HandDrivenFleet;

// Returns the configuration of Fleet::configure() with these queues.
ClusterConfig with(std::vector<QueueConfig> queues) {
  ClusterConfig config = default_cluster_config();
  config.gpu_models = {{"H100", 1000, 81'920}};
  config.queues = std::move(queues);
  return config;
}

struct Team : Fleet {
  Team() {
    configure({queue("a", 8), queue("guest")});
    command(RegisterNode{node("n1")});
  }
};

TEST_CASE("a lowered guarantee names the jobs that become borrowed, and applying it makes just those borrowed") {
  Team fleet;
  const JobId first = fleet.start(Fleet::job("a", 3), "n1", 0);
  const JobId second = fleet.start(Fleet::job("a", 3), "n1", 3);
  const JobId third = fleet.start(Fleet::job("a", 2), "n1", 6);
  const auto told = consequences_of(fleet.state, with({Fleet::queue("a", 5), Fleet::queue("guest")}));
  CHECK_FALSE(told.refusal);
  REQUIRE_EQ(told.queues.size(), 1);
  CHECK_EQ(told.queues[0].borrowed, std::vector<JobId>{second});
  CHECK(told.queues[0].guaranteed.empty());
  CHECK(fleet.within(second, "a"));  // it was only asked
  fleet.configure({Fleet::queue("a", 5), Fleet::queue("guest")});
  CHECK(fleet.within(first, "a"));
  CHECK_FALSE(fleet.within(second, "a"));
  CHECK(fleet.within(third, "a"));
}

TEST_CASE("a raised guarantee names the jobs that become guaranteed") {
  Team fleet;
  const JobId guest = fleet.start(Fleet::job("guest", 2), "n1", 0);
  const JobId large = fleet.start(Fleet::job("guest", 4), "n1", 2);
  const auto told = consequences_of(fleet.state, with({Fleet::queue("a", 4), Fleet::queue("guest", 3)}));
  REQUIRE_EQ(told.queues.size(), 1);
  CHECK_EQ(fleet.state.queue(told.queues[0].queue).path, "guest");
  CHECK_EQ(told.queues[0].guaranteed, std::vector<JobId>{guest});
  fleet.configure({Fleet::queue("a", 4), Fleet::queue("guest", 3)});
  CHECK(fleet.within(guest, "guest"));
  CHECK_FALSE(fleet.within(large, "guest"));
}

TEST_CASE("a ceiling below what runs is told, and so is why a configuration would be refused") {
  Team fleet;
  fleet.start(Fleet::job("a", 3), "n1", 0);
  QueueConfig low = Fleet::queue("a", 2);
  low.max.gpu_milli = 2 * kMilli;
  const auto lowered = consequences_of(fleet.state, with({low, Fleet::queue("guest")}));
  REQUIRE_EQ(lowered.queues.size(), 1);
  CHECK(lowered.queues[0].above_max);
  const auto removed = consequences_of(fleet.state, with({Fleet::queue("guest")}));
  REQUIRE(removed.refusal);
  CHECK_NE(removed.refusal->message.find("queue 'a' still has jobs"), std::string::npos);
  CHECK(consequences_of(fleet.state, fleet.state.config()).queues.empty());
}

}  // namespace
}  // namespace berth::control
