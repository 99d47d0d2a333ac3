#include "billing/ledger.h"

#include "billing/ledger_story.h"

namespace berth::billing {
namespace {

constexpr std::int64_t kGpuS = 1'000'000;  // a GPU-second

}  // namespace

TEST_CASE("floors are used, idle or lent, and what backs no floor is burst or unowned") {
  LedgerStory story;
  story.configure(0, {{"a", 4}, {"b", 2}});
  story.add_node(0, 0, 8);
  story.submit(0, 1, "a");
  story.start(0, 1, 0, {0, 1}, true);
  story.submit(0, 2, "b");
  story.start(0, 2, 0, {2, 3, 4, 5, 6}, false);  // 5 borrowed: 2 on its own floor, 2 on nobody's, 1 on that of a
  story.ledger.advance(Timestamp{1000});
  const FleetAccounts all = story.ledger.fleet().at(0);
  CHECK_EQ(all.floor_used, 2 * kGpuS);
  CHECK_EQ(all.floor_lent, 3 * kGpuS);
  CHECK_EQ(all.burst, 2 * kGpuS);
  CHECK_EQ(all.floor_idle, 1 * kGpuS);
  CHECK_EQ(all.unowned, 0);
  CHECK_EQ(all.capacity, 8 * kGpuS);
  CHECK_EQ(story.floor("b", "b"), 2);
  CHECK_EQ(story.floor("a", "b"), 1);
  CHECK_EQ(story.floor("a", ""), 1);
}

TEST_CASE("a floor that no GPU backs is not held: the backed part is shared in proportion") {
  LedgerStory story;
  story.configure(0, {{"a", 6}, {"b", 2}});
  story.add_node(0, 0, 8);
  story.add_node(0, 1, 0);
  for (std::uint8_t gpu = 0; gpu < 4; ++gpu) story.at(0, GpuHealthChanged{NodeId(0), gpu, false, "xid 79"});
  story.ledger.advance(Timestamp{1000});
  CHECK_EQ(story.floor("a", ""), 3);
  CHECK_EQ(story.floor("b", ""), 1);
  CHECK_EQ(story.ledger.fleet().at(0).failed, 4 * kGpuS);
}

TEST_CASE("GPUs that others use back no floor, and are neither idle nor failed") {
  LedgerStory story;
  story.configure(0, {{"a", 6}, {"b", 2}});
  story.add_node(0, 0, 8);
  story.at(0, ForeignUseChanged{NodeId(0), {4000, 0, {0, 1, 2, 3}, {}}});
  story.ledger.advance(Timestamp{1000});
  CHECK_EQ(story.floor("a", ""), 3);
  CHECK_EQ(story.floor("b", ""), 1);
  const FleetAccounts all = story.ledger.fleet().at(0);
  CHECK_EQ(all.foreign, 4 * kGpuS);
  CHECK_EQ(all.failed, 0);
  CHECK_EQ(all.capacity, 8 * kGpuS);
  story.at(1000, ForeignUseChanged{NodeId(0), {}});
  story.ledger.advance(Timestamp{2000});
  CHECK_EQ(story.ledger.fleet().at(0).foreign, 4 * kGpuS);
}

TEST_CASE("a parent's floor less its children's is used by the leaves below it first") {
  LedgerStory story;
  story.configure(0, {{"org", 6}, {"org/x", 2}, {"org/y", 0}, {"z", 2}});
  story.add_node(0, 0, 8);
  story.submit(0, 1, "org/y");
  story.start(0, 1, 0, {0, 1, 2}, false);
  story.submit(0, 2, "z");
  story.start(0, 2, 0, {3, 4, 5}, false);
  story.ledger.advance(Timestamp{1000});
  CHECK_EQ(story.floor("org", "org/y"), 3);
  CHECK_EQ(story.floor("z", "z"), 2);
  std::int64_t of_others = 0;  // of z, in proportion to what org and org/x have left
  for (const FloorUse& use : story.ledger.floors()) of_others += use.borrower == "z" && !use.own ? use.gpu_milli_ms : 0;
  CHECK_EQ(of_others, 1 * kGpuS);
  CHECK_EQ(story.ledger.fleet().at(0).burst, 0);
}

TEST_CASE("floors of single models are backed by those models; others by any, in the order of their names") {
  LedgerStory story;
  ClusterConfigured event;
  QueueConfig queue;
  queue.path = "a";
  queue.guaranteed.gpu_milli = 6 * kMilli;
  queue.guaranteed.model_gpu_milli = {{"H100", 2 * kMilli}};
  event.config.queues = {queue};
  story.at(0, event);
  story.add_node(0, 0, 3, "A100");
  story.add_node(0, 1, 4, "H100");
  story.ledger.advance(Timestamp{1000});
  CHECK_EQ(story.ledger.fleet().at(0).floor_idle, 3 * kGpuS);
  CHECK_EQ(story.ledger.fleet().at(1).floor_idle, 3 * kGpuS);
  CHECK_EQ(story.ledger.fleet().at(1).unowned, 1 * kGpuS);
}

TEST_CASE("burst pools back no floor") {
  LedgerStory story;
  ClusterConfigured event;
  QueueConfig queue;
  queue.path = "a";
  queue.guaranteed.gpu_milli = 4 * kMilli;
  event.config.queues = {queue};
  event.config.pools.push_back({.name = "default", .burst = true});
  story.at(0, event);
  story.add_node(0, 0, 4);
  story.submit(0, 1, "a");
  story.start(0, 1, 0, {0}, false);
  story.ledger.advance(Timestamp{1000});
  CHECK_EQ(story.ledger.fleet().at(0).burst, 1 * kGpuS);
  CHECK_EQ(story.ledger.fleet().at(0).unowned, 3 * kGpuS);
  CHECK(story.ledger.floors().empty());
}

TEST_CASE("cordoned nodes are drained, and what runs there stays used") {
  LedgerStory story;
  story.add_node(0, 0, 4);
  story.submit(0, 1, "a");
  story.start(0, 1, 0, {0}, false);
  story.at(0, NodeCordoned{NodeId(0), true, true, "op", "", {}});
  story.ledger.advance(Timestamp{1000});
  CHECK_EQ(story.ledger.fleet().at(0).drained, 3 * kGpuS);
  CHECK_EQ(story.ledger.fleet().at(0).burst, 1 * kGpuS);
}

TEST_CASE("a node that was removed counts no more, and is not cordoned when it joins again") {
  LedgerStory story;
  story.add_node(0, 0, 4);
  story.at(0, NodeCordoned{NodeId(0), true, true, "op", "", {}});
  story.at(0, NodeStatusChanged{NodeId(0), NodeStatus::kLost, "", false, true});
  story.at(1000, NodeRemoved{NodeId(0)});
  story.ledger.advance(Timestamp{2000});
  CHECK_EQ(story.ledger.fleet().at(0).failed, 4 * kGpuS);
  CHECK_EQ(story.ledger.fleet().at(0).drained, 0);
  story.add_node(2000, 0, 4);
  story.ledger.advance(Timestamp{3000});
  CHECK_EQ(story.ledger.fleet().at(0).failed, 4 * kGpuS);
  CHECK_EQ(story.ledger.fleet().at(0).drained, 0);
}

TEST_CASE("a guarantee that is set by command is held from then on, and the former one from its end on") {
  LedgerStory story;
  story.configure(0, {{"a", 4}});
  story.add_node(0, 0, 8);
  const auto held_until = [&](std::int64_t ms) {
    story.ledger.advance(Timestamp{ms});
    return story.ledger.fleet().at(0).floor_idle;
  };
  CHECK_EQ(held_until(1000), 4 * kGpuS);
  story.at(1000, QueueChanged{"a", 2, {{"guaranteed.gpus", 7 * kMilli, 4 * kMilli}, {"weight", 3, 1}}, {}, "ada"});
  CHECK_EQ(held_until(2000), 11 * kGpuS);
  story.at(2000,
           QueueChangeEnded{"a", 2, 3, {{"guaranteed.gpus", 4 * kMilli, 7 * kMilli}, {"weight", 1, 3}}, true, "ada"});
  CHECK_EQ(held_until(3000), 15 * kGpuS);
  ClusterConfigured applied;
  applied.config.queues.resize(1);
  applied.config.queues[0].path = "a";
  applied.config.queues[0].guaranteed.gpu_milli = 1 * kMilli;
  applied.kept = {{"a", {{"guaranteed.gpus", 2 * kMilli, 1 * kMilli}}}};
  story.at(3000, applied);
  CHECK_EQ(held_until(4000), 17 * kGpuS);
}

TEST_CASE("a guarantee that decayed is held no longer, and one that is configured anew is") {
  LedgerStory story;
  story.configure(0, {{"a", 4}});
  story.add_node(0, 0, 4);
  GuaranteeChanged decayed{"a", {}, {}, false};
  decayed.to.gpu_milli = 1 * kMilli;
  story.at(1000, decayed);
  story.configure(2000, {{"a", 4}});  // the same as before: it stays decayed
  story.configure(3000, {{"a", 3}});
  story.ledger.advance(Timestamp{4000});
  CHECK_EQ(story.floor("a", ""), 4 + 1 + 1 + 3);
}

TEST_CASE("a window counts only its own time, and splits at its cuts") {
  Ledger ledger({Timestamp{1000}, Timestamp{5000}, {Timestamp{2000}}});
  LedgerStory story;
  story.add_node(0, 0, 2);
  story.submit(0, 1, "a");
  story.start(500, 1, 0, {0, 1}, false);
  story.end(9000, 1);
  for (const EventRecord& event : story.events) ledger.apply(event);
  const auto uses = ledger.jobs();
  REQUIRE_EQ(uses.size(), 4);  // GPUs apart from cores and memory
  CHECK_EQ(uses[0].cpu_milli_ms, 2000 * 1000);
  CHECK_EQ(uses[1].gpu_milli_ms, 2 * kGpuS);
  CHECK_EQ(uses[3].part, 1);
  CHECK_EQ(uses[3].gpu_milli_ms, 6 * kGpuS);
  CHECK_EQ(ledger.fleet().at(0).capacity, 8 * kGpuS);
}

TEST_CASE("a running job is counted until the moment of asking") {
  LedgerStory story;
  story.add_node(0, 0, 1);
  story.submit(0, 1, "a");
  story.start(1000, 1, 0, {0}, true);
  story.ledger.advance(Timestamp{3000});
  CHECK_EQ(story.ledger.jobs().at(1).gpu_milli_ms, 2 * kGpuS);
  story.ledger.look_ahead(Timestamp{9000});
  CHECK_EQ(story.ledger.jobs().at(1).gpu_milli_ms, 8 * kGpuS);
  CHECK_EQ(story.ledger.fleet().at(0).capacity, 9 * kGpuS);
  story.end(4000, 1);  // it was looked further ahead than the next event
  story.ledger.look_ahead(Timestamp{9000});
  CHECK_EQ(story.ledger.jobs().at(1).gpu_milli_ms, 3 * kGpuS);
  CHECK_EQ(story.ledger.fleet().at(0).unowned, 6 * kGpuS);
}

TEST_CASE("a window that begins after the last event counts from its first instant, whether looked ahead or gone on") {
  LedgerStory story;
  story.configure(0, {{"a", 4}, {"b", 2}});
  story.add_node(0, 0, 8);
  story.submit(0, 1, "b");
  story.start(1000, 1, 0, {0, 1, 2}, false);
  const Window window{Timestamp{10'000}, Timestamp{20'000}, {Timestamp{14'000}}};
  const auto amounts = [](const Ledger& ledger) {
    std::string text;
    for (const FloorUse& use : ledger.floors())
      text += use.queue + "/" + use.borrower + "." + std::to_string(use.part) + "=" + std::to_string(use.gpu_milli_ms) +
              " ";
    for (const JobUse& use : ledger.jobs())
      text += std::to_string(use.part) + ":" + std::to_string(use.gpu_milli_ms) + " ";
    for (const FleetAccounts& one : ledger.fleet()) {
      text += std::to_string(one.floor_idle) + "," + std::to_string(one.floor_lent) + "," + std::to_string(one.burst) +
              "," + std::to_string(one.unowned) + "," + std::to_string(one.capacity);
    }
    return text;
  };
  for (const std::int64_t until : {9'000, 10'000, 12'000, 18'000, 20'000, 30'000}) {
    CAPTURE(until);
    Ledger looked(window);
    Ledger gone_on(window);
    for (const EventRecord& event : story.events) looked.apply(event);
    for (const EventRecord& event : story.events) gone_on.apply(event);
    looked.look_ahead(Timestamp{until});
    gone_on.advance(Timestamp{until});
    CHECK_EQ(amounts(looked), amounts(gone_on));
    CHECK_EQ(looked.check().value_or(""), "");
    looked.advance(Timestamp{until});  // the next event comes then
    looked.look_ahead(Timestamp{until});
    CHECK_EQ(amounts(looked), amounts(gone_on));
    CHECK_EQ(gone_on.floors().empty(), until <= 10'000);
  }
}

TEST_CASE("jobs of a renamed queue are billed to it by its new name, as its floor is") {
  LedgerStory story;
  story.configure(0, {{"old", 4}});
  story.add_node(0, 0, 4);
  story.submit(0, 1, "old");
  story.start(0, 1, 0, {0, 1}, true);
  story.end(1000, 1);
  story.at(1500, BillCorrected{"old", "1969-12", JobId::none(), 7, "as agreed", "op"});
  ClusterConfigured renamed;
  renamed.moves = {{"old", "new"}};
  renamed.config.queues.emplace_back().path = "new";
  story.at(2000, renamed);
  CHECK_EQ(story.ledger.job(JobId(1)).queue, "new");
  CHECK_EQ(story.floor("new", ""), 6);
  CHECK_EQ(story.ledger.events_of(JobId(1)), std::vector<Seq>{3, 4, 5});
  CHECK_EQ(story.ledger.floors().size(), 1);
  REQUIRE_EQ(story.ledger.corrections().size(), 1);
  CHECK_EQ(story.ledger.corrections()[0].queue, "new");
}

}  // namespace berth::billing
