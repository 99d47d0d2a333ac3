#include "control/queue_change.h"

#include <doctest/doctest.h>

#include "control/hand_driven_fleet.h"
#include "model/document/limit_setting.h"

namespace berth::control {
namespace {

// research (guaranteed 12, max 16 GPUs) has nlp (8, max 12) and vision (2); nlp has a and b.
struct OrgFleet : HandDrivenFleet {
  ClusterConfig config = default_cluster_config();

  OrgFleet() {
    config.gpu_models = {{"H100", 1000, 81'920}};
    config.queues = {queue("research", 12),   queue("research/nlp", 8),    queue("research/nlp/a", 4),
                     queue("research/nlp/b"), queue("research/vision", 2), queue("other")};
    config.queues[0].max.gpu_milli = 16'000;
    config.queues[1].max.gpu_milli = 12'000;
    config.scheduling.min_runtime_s = 3600;
    apply(config);
    command(RegisterNode{node("n1")});
    command(RegisterNode{node("n2")});
  }

  void apply(const ClusterConfig& changed) { command(ApplyConfig{changed, "berth serve"}); }

  static SetQueue set(const std::string& path, const std::vector<std::string>& settings,
                      Timestamp until = Timestamp::never(), bool operates = false) {
    SetQueue command{path, {}, until, "user:ada", operates, {}};
    for (const std::string& one : settings) command.settings.push_back(document::read_limit_setting(one).value());
    return command;
  }

  std::string refusal(const SetQueue& change) {
    const auto reply = try_command(change);
    return reply ? "" : reply.error().message;
  }
  std::string limit(const std::string& path, const std::string& key) const {
    return document::limit_text(key, limit_of(*queue_named(state.config(), path), key));
  }
  bool survives_a_checkpoint() const {
    const auto loaded = state::State::load(state.save());
    return loaded.has_value() && loaded->digest() == state.digest() && loaded->save() == state.save() &&
           loaded->config() == state.config() && loaded->next_lease_end() == state.next_lease_end() && !state.audit();
  }
};

}  // namespace

TEST_CASE("a command changes one limit of one queue, by an amount or to one, and counts as a version") {
  OrgFleet fleet;
  const std::uint64_t version = fleet.state.config_version();
  const Reply reply = fleet.command(OrgFleet::set("research/nlp", {"guaranteed.gpus=+2", "weight=3"}));
  CHECK_EQ(reply.version, version + 1);
  REQUIRE_EQ(reply.limits.size(), 2);
  CHECK_EQ(reply.limits[0].before, 8000);
  CHECK_EQ(reply.limits[0].value, 10'000);
  CHECK_EQ(fleet.limit("research/nlp", "guaranteed.gpus"), "10");
  CHECK_EQ(fleet.state.queue_at("research/nlp")->guaranteed.amounts[kDimGpu], 10'000);
  CHECK_EQ(fleet.state.queue_at("research/nlp")->weight, 3);
  fleet.command(OrgFleet::set("research/nlp", {"max.gpus=none", "max.memory=2TiB", "max_jobs_per_user=5"}));
  CHECK_EQ(fleet.limit("research/nlp", "max.gpus"), "none");
  CHECK_EQ(fleet.limit("research/nlp", "max.memory"), "2TiB");
  CHECK_EQ(fleet.state.queue_at("research/nlp")->max_jobs_per_user, 5);
  CHECK(fleet.command(OrgFleet::set("research/nlp", {"weight=3"})).unchanged);
  CHECK_EQ(fleet.state.file_config(), fleet.config);
  CHECK(fleet.survives_a_checkpoint());
}

TEST_CASE("what is not within the queue above is refused with its arithmetic, and changes nothing") {
  OrgFleet fleet;
  const std::uint64_t digest = fleet.state.digest();
  CHECK_EQ(fleet.refusal(OrgFleet::set("research/nlp", {"guaranteed.gpus=+4"})),
           "the queues directly below research would be guaranteed 14 gpus (research/nlp 12, research/vision 2), and "
           "research itself is guaranteed 12: 2 too many");
  CHECK_EQ(fleet.refusal(OrgFleet::set("research/nlp", {"guaranteed.gpus=3"})),
           "the queues directly below research/nlp would be guaranteed 4 gpus (research/nlp/a 4), and research/nlp "
           "itself is guaranteed 3: 1 too many");
  CHECK_EQ(fleet.refusal(OrgFleet::set("research/vision", {"max.gpus=17"})),
           "research/vision: max.gpus 17 would be above the 16 of research");
  CHECK_EQ(fleet.refusal(OrgFleet::set("research/nlp", {"max.gpus=7"})),
           "research/nlp: guaranteed.gpus 8 would be above max.gpus 7 of research/nlp");
  CHECK_EQ(fleet.refusal(OrgFleet::set("research/nlp/b", {"max.gpus=13"})),
           "research/nlp/b: max.gpus 13 would be above the 12 of research/nlp");
  CHECK_EQ(fleet.refusal(OrgFleet::set("research/nlp", {"guaranteed.gpus=-9"})),
           "guaranteed.gpus is 8, so it cannot be 9 less");
  CHECK(fleet.refusal(OrgFleet::set("research/nlp/a", {"max.gpus=+1"})).starts_with("max.gpus is not stated"));
  CHECK(fleet.refusal(OrgFleet::set("research/nope", {"weight=1"})).starts_with("no such queue"));
  CHECK(fleet.refusal(OrgFleet::set("research/nlp", {"weight=1", "weight=2"})).find("twice") != std::string::npos);
  CHECK(fleet.refusal(OrgFleet::set("research/nlp", {"weight=1000001"})).find("1000000") != std::string::npos);
  CHECK(fleet.refusal(OrgFleet::set("research/nlp", {"max.gpus.B300=1"})).find("no such GPU model") !=
        std::string::npos);
  CHECK_EQ(fleet.state.digest(), digest);
}

TEST_CASE("terms of eviction protect no more than those of the queue above, but by the operator") {
  OrgFleet fleet;
  CHECK_EQ(fleet.refusal(OrgFleet::set("research/nlp", {"eviction.min_runtime=30m"})), "");
  CHECK_EQ(
      fleet.refusal(OrgFleet::set("research/nlp/a", {"eviction.min_runtime=1h"})),
      "research/nlp/a: eviction.min_runtime 1h would be above that of the queue above, 30m; more is the operator's "
      "to give");
  const auto code = [&](const Command& command) { return fleet.try_command(command).error().code; };
  CHECK(code(OrgFleet::set("research/nlp/a", {"eviction.min_runtime=1h"})) == ErrorCode::kDenied);  // an operator may
  CHECK(code(OrgFleet::set("research/nlp/a", {"eviction.evictions_per_hour=1"})) == ErrorCode::kDenied);
  CHECK(code(OrgFleet::set("research/nlp/b", {"max.gpus=13"})) == ErrorCode::kConflict);  // nobody may
  CHECK_EQ(fleet.refusal(OrgFleet::set("research/nlp", {"eviction.min_runtime=2h"}, Timestamp::never(), true)), "");
  CHECK_EQ(fleet.refusal(OrgFleet::set("research/nlp/a", {"eviction.min_runtime=1h"})), "");
  CHECK(fleet.refusal(OrgFleet::set("research/nlp", {"eviction.evictions_per_hour=2"})).find("no queue above") !=
        std::string::npos);
  CHECK_EQ(fleet.refusal(OrgFleet::set("research", {"eviction.evictions_per_hour=4"}, Timestamp::never(), true)), "");
  CHECK_FALSE(fleet.refusal(OrgFleet::set("research/nlp", {"eviction.evictions_per_hour=2"})).empty());
  CHECK_EQ(fleet.refusal(OrgFleet::set("research/nlp", {"eviction.evictions_per_hour=5"})), "");
}

TEST_CASE("a leased change goes back by itself, to what was changed below it meanwhile") {
  OrgFleet fleet;
  const Timestamp until = fleet.now + 600'000;
  fleet.command(OrgFleet::set("research/nlp", {"guaranteed.gpus=9"}));
  fleet.command(OrgFleet::set("research/nlp", {"guaranteed.gpus=+1"}, until));
  CHECK_EQ(fleet.state.next_lease_end(), until);
  CHECK(fleet.survives_a_checkpoint());
  fleet.pass(599);
  CHECK_EQ(fleet.limit("research/nlp", "guaranteed.gpus"), "10");
  fleet.pass(1);
  CHECK_EQ(fleet.limit("research/nlp", "guaranteed.gpus"), "9");
  CHECK(fleet.state.next_lease_end().is_never());
  CHECK(fleet.survives_a_checkpoint());
  CHECK_FALSE(fleet.refusal(OrgFleet::set("research/nlp", {"weight=2"}, fleet.now)).empty());
}

TEST_CASE("an amount is added to what is in force once a lease that is over has ended") {
  OrgFleet fleet;
  fleet.command(OrgFleet::set("research/nlp", {"guaranteed.gpus=+2"}, fleet.now + 600'000));
  fleet.now = fleet.now + 600'000;
  fleet.command(OrgFleet::set("research/nlp", {"guaranteed.gpus=+1"}));
  CHECK_EQ(fleet.limit("research/nlp", "guaranteed.gpus"), "9");
}

TEST_CASE("a change that would not hold when a lease ends is refused") {
  OrgFleet fleet;
  const Timestamp until = fleet.now + 600'000;
  fleet.command(OrgFleet::set("research/nlp", {"guaranteed.gpus=+2"}, until));
  const std::string refusal = fleet.refusal(OrgFleet::set("research/nlp/a", {"guaranteed.gpus=9"}));
  CHECK(refusal.starts_with("it would not hold from " + to_iso8601(until) + " on, when a lease ends: "));
  CHECK(refusal.find("research/nlp itself is guaranteed 8: 1 too many") != std::string::npos);
  CHECK_EQ(fleet.refusal(OrgFleet::set("research/nlp/a", {"guaranteed.gpus=9"}, until)), "");
  CHECK_FALSE(fleet.try_command(UndoQueueChange{"research/nlp", "user:ada", {}}).has_value());
  fleet.pass(600);
  CHECK_EQ(fleet.limit("research/nlp/a", "guaranteed.gpus"), "4");
  CHECK(fleet.state.queue_edits().empty());
}

TEST_CASE("undoing takes the last change back, and then the one before it") {
  OrgFleet fleet;
  fleet.command(OrgFleet::set("research/nlp", {"guaranteed.gpus=9"}));
  fleet.command(OrgFleet::set("research/nlp", {"guaranteed.gpus=10", "weight=2"}));
  const Reply undone = fleet.command(UndoQueueChange{"research/nlp", "user:ada", {}});
  REQUIRE_EQ(undone.limits.size(), 2);
  CHECK_EQ(undone.limits[0].value, 9000);
  CHECK_EQ(fleet.limit("research/nlp", "weight"), "1");
  fleet.command(UndoQueueChange{"research/nlp", "user:ada", {}});
  CHECK_EQ(fleet.limit("research/nlp", "guaranteed.gpus"), "8");
  const auto nothing = fleet.try_command(UndoQueueChange{"research/nlp", "user:ada", {}});
  REQUIRE_FALSE(nothing.has_value());
  CHECK(nothing.error().message.starts_with("nothing to undo"));
}

TEST_CASE("of two who change what they both saw, the second is told by whom it was changed") {
  OrgFleet fleet;
  SetQueue ada = OrgFleet::set("research/nlp", {"guaranteed.gpus=9"});
  SetQueue bob = OrgFleet::set("research/nlp", {"guaranteed.gpus=10"});
  ada.if_revision = bob.if_revision = revision_in(fleet.state, "research/nlp");
  CHECK_FALSE(fleet.command(ada).stale);
  const Reply told = fleet.command(bob);
  CHECK(told.stale);
  CHECK(told.stale_by.starts_with("user:ada set guaranteed.gpus=9 at "));
  CHECK_EQ(fleet.limit("research/nlp", "guaranteed.gpus"), "9");
  bob.if_revision = told.revision;
  CHECK_FALSE(fleet.command(bob).stale);
  // Changes by an amount are both kept, and a file that was made before them is told.
  fleet.command(OrgFleet::set("research/vision", {"weight=+2"}));
  const std::uint64_t seen = fleet.state.config_version();
  fleet.command(OrgFleet::set("research/vision", {"weight=+3"}));
  CHECK_EQ(fleet.limit("research/vision", "weight"), "6");
  CHECK(fleet.command(ApplyConfig{fleet.config, "op", seen}).stale);
}

TEST_CASE("a file takes over the limits that it changes, and leaves the others as they were set by command") {
  OrgFleet fleet;
  fleet.command(OrgFleet::set("research/nlp", {"guaranteed.gpus=9", "weight=5"}));
  fleet.command(OrgFleet::set("research/vision", {"weight=7"}, fleet.now + 600'000));
  CHECK(fleet.command(ApplyConfig{fleet.config, "op"}).unchanged);
  ClusterConfig changed = fleet.config;
  changed.queues[1].weight = 2;
  changed.queues[5].weight = 4;
  fleet.apply(changed);
  CHECK_EQ(fleet.limit("research/nlp", "weight"), "2");
  CHECK_EQ(fleet.limit("research/nlp", "guaranteed.gpus"), "9");
  CHECK_EQ(fleet.limit("research/vision", "weight"), "7");
  CHECK_EQ(fleet.limit("other", "weight"), "4");
  CHECK(fleet.survives_a_checkpoint());
  // A file that leaves no room for what was set is refused, and says what it is.
  ClusterConfig tight = changed;
  tight.queues[0].guaranteed.gpu_milli = 10'000;
  const auto refused = fleet.try_command(ApplyConfig{tight, "berth serve"});
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().message.find("research/nlp") != std::string::npos);
  CHECK(refused.error().message.find("berth queue undo") != std::string::npos);
}

TEST_CASE("changes by command follow a queue that is renamed, and go with one that is removed") {
  OrgFleet fleet;
  fleet.command(OrgFleet::set("research/vision", {"weight=7"}));
  fleet.command(BindRole{{"user:bob", Role::kLead, "research/vision"}, true, "user:ada"});
  ClusterConfig renamed = fleet.config;
  renamed.queues[4].path = "research/sight";
  renamed.queues[4].moved_from = "research/vision";
  fleet.apply(renamed);
  CHECK_EQ(fleet.limit("research/sight", "weight"), "7");
  CHECK(fleet.state.granted().contains({"user:bob", Role::kLead, "research/sight"}));
  CHECK(fleet.survives_a_checkpoint());
  ClusterConfig removed = fleet.config;
  removed.queues.erase(removed.queues.begin() + 4);
  fleet.apply(removed);
  CHECK(fleet.state.queue_edits().empty());
  CHECK(fleet.state.granted().empty());
}

TEST_CASE("a running job that the changed guarantee no longer covers counts as borrowed") {
  OrgFleet fleet;
  const JobId job = fleet.start(HandDrivenFleet::job("research/nlp/a", 4), "n1", 0);
  CHECK(fleet.within(job, "research/nlp/a"));
  fleet.command(OrgFleet::set("research/nlp/a", {"guaranteed.gpus=2"}));
  CHECK_FALSE(fleet.within(job, "research/nlp/a"));
  const JobId next = fleet.start(HandDrivenFleet::job("research/nlp/a", 1), "n1", 4);
  CHECK(fleet.within(next, "research/nlp/a"));
  CHECK_FALSE(fleet.state.audit());
}

TEST_CASE("old changes that later ones cover are forgotten, and a queue has a bounded number of them") {
  OrgFleet fleet;
  for (int i = 0; i < 100; ++i) fleet.command(OrgFleet::set("research/nlp", {i % 2 == 0 ? "weight=2" : "weight=3"}));
  CHECK_EQ(fleet.state.queue_edits().at("research/nlp").size(), kMostEditsPerQueue);
  std::string refusal;
  for (int i = 0; i < 100 && refusal.empty(); ++i)
    refusal = fleet.refusal(OrgFleet::set("research/vision", {"weight=+1"}, fleet.now + 1'000'000 + i));
  CHECK(refusal.find("changes by command already") != std::string::npos);
  CHECK(fleet.survives_a_checkpoint());
}

}  // namespace berth::control
