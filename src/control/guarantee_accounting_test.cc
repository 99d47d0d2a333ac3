#include "control/guarantee_accounting.h"

#include "control/hand_driven_fleet.h"

namespace berth::control {
namespace {

using Fleet = HandDrivenFleet;

struct TwoNodes : Fleet {
  TwoNodes() { configure({queue("a", 8), queue("guest")}); }
  void join() {
    command(RegisterNode{node("n1")});
    command(RegisterNode{node("n2")});
  }
};

TEST_CASE("what a lowered guarantee has no room for is borrowed, the last to start first, and nobody is stopped") {
  TwoNodes fleet;
  fleet.join();
  const JobId first = fleet.start(Fleet::job("a", 3), "n1", 0);
  const JobId second = fleet.start(Fleet::job("a", 3), "n1", 3);
  const JobId third = fleet.start(Fleet::job("a", 2), "n1", 6);
  CHECK((fleet.within(first, "a") && fleet.within(second, "a") && fleet.within(third, "a")));
  fleet.configure({Fleet::queue("a", 5), Fleet::queue("guest")});
  CHECK(fleet.within(first, "a"));
  CHECK_FALSE(fleet.within(second, "a"));
  CHECK(fleet.within(third, "a"));  // it fits beside the first
  fleet.configure({Fleet::queue("a", 2), Fleet::queue("guest")});
  CHECK_FALSE(fleet.within(first, "a"));
  CHECK(fleet.within(third, "a"));
  fleet.configure({Fleet::queue("a"), Fleet::queue("guest")});
  CHECK_FALSE(fleet.within(third, "a"));
  for (const JobId job : {first, second, third}) CHECK_FALSE(fleet.stopping(job));
}

TEST_CASE("room goes to who started first, and past who does not fit into it") {
  TwoNodes fleet;
  fleet.join();
  fleet.configure({Fleet::queue("a", 4), Fleet::queue("guest")});
  const JobId within = fleet.start(Fleet::job("a", 4), "n1", 0);
  const JobId large = fleet.start(Fleet::job("a", 3), "n1", 4);
  const JobId middle = fleet.start(Fleet::job("a", 2), "n2", 0);
  const JobId small = fleet.start(Fleet::job("a", 1), "n2", 2);
  CHECK_FALSE((fleet.within(large, "a") || fleet.within(middle, "a") || fleet.within(small, "a")));
  fleet.exit(within);
  CHECK(fleet.within(large, "a"));
  CHECK_FALSE(fleet.within(middle, "a"));
  CHECK(fleet.within(small, "a"));
  fleet.exit(large);
  CHECK(fleet.within(middle, "a"));
}

TEST_CASE("no charge is promoted into what is nominated to a preemptor") {
  TwoNodes fleet;
  fleet.join();
  fleet.configure({Fleet::queue("a", 4), Fleet::queue("guest")});
  const JobId within = fleet.start(Fleet::job("a", 4), "n1", 0);
  const JobId guest = fleet.start(Fleet::job("guest", 2), "n1", 4);
  const JobId borrower = fleet.start(Fleet::job("a", 3), "n2", 0);
  const JobId preemptor = fleet.submit(Fleet::job("a", 2));
  fleet.decide(EvictDecision{preemptor, {fleet.place(preemptor, "n1", 4)}, {guest}, {StopCause::kReclaim}, {0}, {}});
  fleet.exit(within);
  CHECK_FALSE(fleet.within(borrower, "a"));
  fleet.decide(DropNominationDecision{preemptor, "it went away"});
  CHECK(fleet.within(borrower, "a"));
}

TEST_CASE("a nomination that will borrow keeps no room from others") {
  TwoNodes fleet;
  fleet.join();
  fleet.configure({Fleet::queue("a", 4), Fleet::queue("guest")});
  const JobId within = fleet.start(Fleet::job("a", 4), "n1", 0);
  const JobId guest = fleet.start(Fleet::job("guest", 4), "n1", 4);
  const JobId borrower = fleet.start(Fleet::job("a", 3), "n2", 0);
  const JobId preemptor = fleet.submit(Fleet::job("a", 4));
  const std::uint64_t nowhere = 1;  // within no guarantee: only the bit of the root
  const auto places = {fleet.place(preemptor, "n1", 4)};
  fleet.decide(EvictDecision{preemptor, places, {guest}, {StopCause::kPreempt}, {0}, StopCause::kPreempt, nowhere});
  fleet.exit(within);
  CHECK(fleet.within(borrower, "a"));
}

TEST_CASE("what stands in a burst pool is within nowhere, whatever room there is") {
  TwoNodes fleet;
  PoolConfig cloud{"cloud"};
  cloud.burst = true;
  fleet.configure({Fleet::queue("a", 4), Fleet::queue("guest")}, {cloud});
  fleet.command(RegisterNode{fleet.node("n1")});
  fleet.command(RegisterNode{fleet.node("c1", "cloud")});
  const JobId job = fleet.start(Fleet::job("a", 2), "c1", 0);
  CHECK_FALSE(fleet.within(job, "a"));
  fleet.configure({Fleet::queue("a", 8), Fleet::queue("guest")}, {cloud});
  CHECK_FALSE(fleet.within(job, "a"));
}

TEST_CASE("who is within at a child takes the parent's room from who is there only because it was idle") {
  TwoNodes fleet;
  fleet.join();
  fleet.configure({Fleet::queue("p", 4), Fleet::queue("p/a", 2), Fleet::queue("p/b", 2)});
  const JobId early = fleet.start(Fleet::job("p/b", 1), "n1", 0);
  const JobId middle = fleet.start(Fleet::job("p/b", 2), "n1", 1);
  const JobId late = fleet.start(Fleet::job("p/b", 1), "n1", 3);
  CHECK((fleet.within(early, "p/b") && fleet.within(late, "p/b")));
  CHECK_FALSE(fleet.within(middle, "p/b"));
  CHECK((fleet.within(early, "p") && fleet.within(middle, "p") && fleet.within(late, "p")));
  const JobId owner = fleet.start(Fleet::job("p/a", 2), "n1", 4);
  CHECK((fleet.within(owner, "p") && fleet.within(owner, "p/a")));
  CHECK_FALSE(fleet.within(middle, "p"));  // the only charge of p/b that borrows at its child of p
  CHECK((fleet.within(early, "p") && fleet.within(late, "p")));
}

TEST_CASE("of those that may give way as few do as have to, the last to start first") {
  TwoNodes fleet;
  fleet.join();
  fleet.configure({Fleet::queue("p", 6), Fleet::queue("p/a", 2), Fleet::queue("p/b")});
  const JobId first = fleet.start(Fleet::job("p/b", 3), "n1", 0);
  const JobId second = fleet.start(Fleet::job("p/b", 2), "n1", 3);
  const JobId third = fleet.start(Fleet::job("p/b", 1), "n1", 5);
  const JobId owner = fleet.start(Fleet::job("p/a", 1), "n1", 6);
  CHECK((fleet.within(owner, "p") && fleet.within(first, "p") && fleet.within(second, "p")));
  CHECK_FALSE(fleet.within(third, "p"));
  const JobId other = fleet.start(Fleet::job("p/a", 1), "n1", 7);
  CHECK((fleet.within(other, "p") && fleet.within(first, "p")));
  CHECK_FALSE(fleet.within(second, "p"));
  CHECK(fleet.within(third, "p"));  // promoted into the room that `second` left
}

TEST_CASE("nobody gives way to whom he stands higher than, further up in the tree") {
  TwoNodes fleet;
  fleet.join();
  QueueConfig org = Fleet::queue("o", 8);
  org.guaranteed.cpu_milli = 8000;
  fleet.configure({org, Fleet::queue("o/p", 8), Fleet::queue("o/p/a", 4), Fleet::queue("o/p/b", 4)});
  const JobId early = fleet.start(Fleet::job("o/p/b", 8), "n1", 0);
  REQUIRE((fleet.within(early, "o") && fleet.within(early, "o/p") && !fleet.within(early, "o/p/b")));
  // `late` requests more cores than `o` is guaranteed.
  const JobId late = fleet.start(Fleet::job("o/p/a", 4, 16'000), "n2", 0);
  CHECK(fleet.within(late, "o/p/a"));
  CHECK_FALSE((fleet.within(late, "o") || fleet.within(late, "o/p")));
  CHECK((fleet.within(early, "o") && fleet.within(early, "o/p")));
}

// Both jobs request more cores than o/p is guaranteed, so both borrow at o/p. At `o` they have equal rights, and the
// job that started first keeps its room.
TEST_CASE("room further up is taken only by who is within at the child there") {
  TwoNodes fleet;
  fleet.join();
  QueueConfig org = Fleet::queue("o", 4);
  org.guaranteed.cpu_milli = 64'000;
  QueueConfig team = Fleet::queue("o/p", 4);
  team.guaranteed.cpu_milli = 8000;
  fleet.configure({org, team, Fleet::queue("o/p/q", 4), Fleet::queue("o/p/q/a", 3), Fleet::queue("o/p/q/b", 1)});
  const JobId early = fleet.start(Fleet::job("o/p/q/b", 4, 16'000), "n1", 0);
  REQUIRE((fleet.within(early, "o") && !fleet.within(early, "o/p") && fleet.within(early, "o/p/q")));
  const JobId late = fleet.start(Fleet::job("o/p/q/a", 3, 16'000), "n1", 4);
  CHECK(fleet.within(late, "o/p/q/a"));
  CHECK((fleet.within(early, "o") && fleet.within(early, "o/p/q")));
  CHECK_FALSE((fleet.within(late, "o") || fleet.within(late, "o/p") || fleet.within(late, "o/p/q")));
}

}  // namespace
}  // namespace berth::control
