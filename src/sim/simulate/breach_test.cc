#include "sim/simulate/breach.h"

#include "control/hand_driven_fleet.h"

namespace berth::sim {
namespace {

// Two queues with a guarantee of 8 GPUs each and one that borrows, on two nodes of eight GPUs. The test evicts by hand.
struct Fleet : control::HandDrivenFleet {
  Fleet() {
    configure({queue("owner", 8), queue("other", 8), queue("guest")});
    command(RegisterNode{node("n1")});
    command(RegisterNode{node("n2")});
  }
  void evict(JobId preemptor, const std::string& node, std::uint8_t first, JobId victim) {
    decide(EvictDecision{preemptor, {place(preemptor, node, first)}, {victim}, {StopCause::kReclaim}, {0}, {}});
  }
  void lend_all() {
    start(job("guest", 8), "n1", 0);
    start(job("guest", 8), "n2", 0);
  }
  Breach breach() { return breach_of(state, state.queue_at("owner")->id); }
};

TEST_CASE("a claim that nobody has made is owed") {
  Fleet fleet;
  fleet.lend_all();
  fleet.submit(Fleet::job("owner", 4));
  const std::uint64_t before = fleet.state.digest();
  CHECK(fleet.breach() == Breach::kUnserved);
  CHECK(fleet.state.digest() == before);
}

TEST_CASE("who is promised places waits for those who leave") {
  Fleet fleet;
  const JobId guest = fleet.start(Fleet::job("guest", 8), "n1", 0);
  fleet.start(Fleet::job("guest", 8), "n2", 0);
  const JobId preemptor = fleet.submit(Fleet::job("owner", 4));
  fleet.evict(preemptor, "n1", 0, guest);
  CHECK(fleet.breach() == Breach::kLeaving);
}

TEST_CASE("what a victim leaves beside its claimant needs no claim; it is taken then") {
  Fleet fleet;
  const JobId guest = fleet.start(Fleet::job("guest", 8), "n1", 0);
  fleet.start(Fleet::job("other", 8), "n2", 0);
  const JobId preemptor = fleet.submit(Fleet::job("owner", 4));
  fleet.evict(preemptor, "n1", 0, guest);
  fleet.submit(Fleet::job("owner", 4));
  CHECK(fleet.breach() == Breach::kLeaving);
}

TEST_CASE("a claim is owed, too, where those who leave make room for a part of it") {
  Fleet fleet;
  const JobId leaving = fleet.start(Fleet::job("guest", 4), "n1", 0);
  fleet.start(Fleet::job("guest", 4), "n1", 4);
  fleet.start(Fleet::job("other", 8), "n2", 0);
  const JobId preemptor = fleet.submit(Fleet::job("owner", 2));
  fleet.evict(preemptor, "n1", 0, leaving);
  fleet.submit(Fleet::job("owner", 6));
  CHECK(fleet.breach() == Breach::kUnserved);
}

TEST_CASE("those within their guarantees may stand in the way") {
  Fleet fleet;
  fleet.start(Fleet::job("other", 1), "n1", 0);
  fleet.start(Fleet::job("other", 1), "n2", 0);
  fleet.start(Fleet::job("guest", 4), "n1", 4);
  fleet.submit(Fleet::job("owner", 8));
  CHECK(fleet.breach() == Breach::kNoPlace);
}

TEST_CASE("what runs in the queue itself stays") {
  Fleet fleet;
  fleet.start(Fleet::job("owner", 2), "n1", 0);
  fleet.start(Fleet::job("other", 8), "n2", 0);
  fleet.start(Fleet::job("guest", 6), "n1", 2);
  fleet.submit(Fleet::job("owner", 6));
  CHECK(fleet.breach() == Breach::kUnserved);
}

TEST_CASE("what waits below the queue is owed to it") {
  Fleet fleet;
  fleet.configure(
      {Fleet::queue("owner", 8), Fleet::queue("owner/team"), Fleet::queue("other", 8), Fleet::queue("guest")});
  fleet.lend_all();
  fleet.submit(Fleet::job("owner/team", 4));
  CHECK(fleet.breach() == Breach::kUnserved);
}

TEST_CASE("what would not lie within the guarantee is not owed") {
  Fleet fleet;
  fleet.start(Fleet::job("owner", 4), "n1", 0);
  fleet.start(Fleet::job("guest", 4), "n1", 4);
  fleet.start(Fleet::job("guest", 8), "n2", 0);
  fleet.submit(Fleet::job("owner", 5));
  CHECK(fleet.breach() == Breach::kNoPlace);
  fleet.submit(Fleet::job("owner", 4));
  CHECK(fleet.breach() == Breach::kUnserved);
}

}  // namespace
}  // namespace berth::sim
