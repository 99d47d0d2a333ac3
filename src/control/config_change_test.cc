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

// Returns why the queues would be refused, or nothing.
std::string refusal_of(Fleet& fleet, std::vector<QueueConfig> queues) {
  const auto told = check_config_change(fleet.state, with(std::move(queues)));
  return told ? "" : told.error().message;
}

QueueConfig moved(QueueConfig queue, std::string from) {
  queue.moved_from = std::move(from);
  return queue;
}

TEST_CASE("a renamed queue keeps its jobs, their charges, its place in the tree and its tokens") {
  Fleet fleet;
  fleet.configure({Fleet::queue("a", 8), Fleet::queue("a/x", 4), Fleet::queue("guest")});
  fleet.command(RegisterNode{fleet.node("n1")});
  fleet.command(CreateToken{{"ci", std::string(64, 'a'), Role::kMember, "a/x", "ann", Timestamp::never(), "op"}});
  const JobId runs = fleet.start(Fleet::job("a/x", 3), "n1", 0);
  const JobId waits = fleet.submit(Fleet::job("a/x", 2));
  const auto id = fleet.state.queue_at("a/x")->id;
  const auto used = fleet.state.queue(id).usage;
  const std::vector<QueueConfig> renamed = {moved(Fleet::queue("b", 8), "a"), Fleet::queue("b/x", 4),
                                            Fleet::queue("guest")};
  CHECK_FALSE(consequences_of(fleet.state, with(renamed)).refusal);
  CHECK(consequences_of(fleet.state, with(renamed)).queues.empty());
  fleet.configure(renamed);
  CHECK_EQ(fleet.state.queue_at("a"), nullptr);
  REQUIRE_NE(fleet.state.queue_at("b/x"), nullptr);
  CHECK_EQ(fleet.state.queue_at("b/x")->id, id);
  CHECK_EQ(fleet.state.queue(id).usage, used);
  for (const JobId job : {runs, waits}) CHECK_EQ(fleet.state.job(job)->spec.queue, "b/x");
  CHECK(fleet.within(runs, "b/x"));
  CHECK_EQ(fleet.state.tokens().at("ci").queue, "b/x");
  CHECK(moves_of(fleet.state, with(renamed)).empty());  // the same file again
  fleet.configure({moved(Fleet::queue("a", 8), "b"), Fleet::queue("a/x", 4), Fleet::queue("guest")});  // and back
  CHECK_EQ(fleet.state.queue_at("a/x")->id, id);
  CHECK_EQ(fleet.state.job(runs)->spec.queue, "a/x");
}

TEST_CASE("the name of a queue that was renamed is no other queue's") {
  Fleet fleet;
  fleet.configure({Fleet::queue("a", 8), Fleet::queue("a/x", 4), Fleet::queue("guest")});
  fleet.configure({moved(Fleet::queue("b", 8), "a"), Fleet::queue("b/x", 4), Fleet::queue("guest")});
  CHECK_EQ(fleet.state.present_path("a/x"), "b/x");
  CHECK_EQ(fleet.state.present_path("guest"), "guest");
  const std::vector<QueueConfig> reused = {Fleet::queue("b", 8), Fleet::queue("b/x", 4), Fleet::queue("guest"),
                                           Fleet::queue("a")};
  CHECK_NE(refusal_of(fleet, reused).find("queue 'a': that is the former name of queue 'b'"), std::string::npos);
  CHECK_NE(refusal_of(fleet, {Fleet::queue("b", 8), Fleet::queue("b/x", 4), moved(Fleet::queue("a"), "guest")})
               .find("queue 'a': that is the former name of queue 'b'"),
           std::string::npos);
  auto loaded = state::State::load(fleet.state.save());
  REQUIRE(loaded);
  CHECK_EQ(loaded->present_path("a"), "b");
  CHECK_EQ(loaded->digest(), fleet.state.digest());
}

TEST_CASE("a queue that was removed comes back only as itself, and without its tokens") {
  Fleet fleet;
  fleet.configure({Fleet::queue("a", 8), Fleet::queue("guest")});
  fleet.command(CreateToken{{"ci", std::string(64, 'a'), Role::kMember, "a", "ann", Timestamp::never(), "op"}});
  fleet.command(CreateToken{{"ops", std::string(64, 'b'), Role::kOperator, "", "bob", Timestamp::never(), "op"}});
  fleet.command(BindRole{{"token:ci", Role::kViewer, "guest"}, true, "op"});
  fleet.configure({Fleet::queue("guest")});
  CHECK_FALSE(fleet.state.tokens().contains("ci"));
  CHECK(fleet.state.tokens().contains("ops"));
  CHECK(fleet.state.granted().empty());
  QueueConfig again = Fleet::queue("a", 8);
  CHECK_NE(refusal_of(fleet, {again, Fleet::queue("guest")}).find("give it 'returns: true'"), std::string::npos);
  again.returns = true;
  fleet.configure({again, Fleet::queue("guest")});
  REQUIRE_NE(fleet.state.queue_at("a"), nullptr);
  again.returns = false;  // the key says nothing of a queue that is there
  CHECK_EQ(refusal_of(fleet, {again, Fleet::queue("guest")}), "");
}

TEST_CASE("a rename that could be taken for another change is refused, and says why") {
  Fleet fleet;
  fleet.configure({Fleet::queue("a", 8), Fleet::queue("a/x"), Fleet::queue("guest"), Fleet::queue("old")});
  fleet.configure({Fleet::queue("a", 8), Fleet::queue("a/x"), Fleet::queue("guest")});
  CHECK_NE(refusal_of(fleet, {moved(Fleet::queue("old"), "a"), Fleet::queue("old/x"), Fleet::queue("guest")})
               .find("there was a queue 'old' before"),
           std::string::npos);
  CHECK_NE(refusal_of(fleet, {moved(Fleet::queue("b"), "a"), moved(Fleet::queue("b/y"), "b/x"), Fleet::queue("guest")})
               .find("'b' above it is renamed, too"),
           std::string::npos);
  const auto mistake = [](std::vector<QueueConfig> queues) {
    const auto valid = validate(with(std::move(queues)));
    return valid ? std::string() : valid.error().message;
  };
  CHECK_NE(mistake({moved(Fleet::queue("b"), "a/x")}).find("has another parent"), std::string::npos);
  CHECK_NE(mistake({Fleet::queue("a"), moved(Fleet::queue("b"), "a")}).find("is configured too"), std::string::npos);
  CHECK_NE(mistake({moved(Fleet::queue("b"), "a"), moved(Fleet::queue("c"), "a")}).find("another queue was 'a'"),
           std::string::npos);
}

}  // namespace
}  // namespace berth::control
