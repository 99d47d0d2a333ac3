#include "control/drain.h"

#include <doctest/doctest.h>

#include "control/hand_driven_fleet.h"

namespace berth::control {
namespace {

struct DrainFleet : HandDrivenFleet {
  DrainFleet() {
    configure({queue("a")});
    command(RegisterNode{node("n1")});
    JobSpec saves = job("a", 2);
    saves.checkpoint.on_signal = true;
    saver = start(saves, "n1", 0);
    other = start(job("a", 4), "n1", 2);
    now = now + 60'000;
  }
  Reply drain(bool lose_work = false, bool when_idle = false, std::int64_t deadline_s = 0) {
    CordonNode drain{"n1", true, true, "op"};
    drain.lose_work = lose_work;
    drain.when_idle = when_idle;
    drain.deadline_s = deadline_s;
    return command(drain);
  }

  JobId saver, other;
};

TEST_CASE("a drain lets a job that cannot save run to its end, and says what it would lose") {
  DrainFleet fleet;
  const Reply reply = fleet.drain();
  CHECK(fleet.stopping(fleet.saver));
  CHECK_FALSE(fleet.stopping(fleet.other));
  REQUIRE_EQ(reply.drained.size(), 2);
  CHECK(reply.drained[0].leaves);
  CHECK_FALSE(reply.drained[0].loses_work);
  CHECK_EQ(reply.drained[0].unsaved_s, 0);
  CHECK_EQ(reply.drained[1].job, fleet.other);
  CHECK_FALSE(reply.drained[1].leaves);
  CHECK(reply.drained[1].loses_work);
  CHECK_EQ(reply.drained[1].unsaved_s, 60);
  CHECK_EQ(reply.drained[1].gpu_milli, 4000);
  fleet.pass(3600);
  CHECK_FALSE(fleet.stopping(fleet.other));
}

TEST_CASE("a drain with lose_work stops every job, also one that stayed before") {
  DrainFleet fleet;
  fleet.drain();
  const Reply reply = fleet.drain(true);
  CHECK_FALSE(reply.unchanged);
  CHECK(fleet.stopping(fleet.other));
  CHECK(fleet.state.job(fleet.other)->attempt->stop->cause == StopCause::kDrain);
  CHECK(fleet.drain(true).unchanged);
}

TEST_CASE("a drain when idle asks no job to leave, and nothing new starts on the node") {
  DrainFleet fleet;
  const Reply reply = fleet.drain(false, true);
  CHECK_FALSE(fleet.stopping(fleet.saver));
  CHECK_FALSE(fleet.stopping(fleet.other));
  CHECK_FALSE(reply.drained[0].leaves);
  CHECK_FALSE(fleet.state.node_named("n1")->takes_tasks());
  CHECK(fleet.drain(false, true).unchanged);
}

TEST_CASE("at the deadline of a drain nothing runs on the node, and uncordoning takes the deadline back") {
  DrainFleet fleet;
  fleet.drain(false, false, 3600);
  fleet.pass(3500);
  CHECK_FALSE(fleet.stopping(fleet.other));
  fleet.pass(90);
  CHECK(fleet.stopping(fleet.other));
  DrainFleet taken_back;
  taken_back.drain(false, false, 3600);
  taken_back.drain(false, false, 7200);
  CHECK_EQ(taken_back.state.maintenance().size(), 1);
  taken_back.command(CordonNode{"n1", false, false, "op"});
  CHECK(taken_back.state.maintenance().empty());
  taken_back.pass(7200);
  CHECK_FALSE(taken_back.stopping(taken_back.other));
}

TEST_CASE("terms of a drain that contradict each other are refused") {
  DrainFleet fleet;
  CordonNode both{"n1", true, true, "op"};
  both.lose_work = both.when_idle = true;
  CHECK_FALSE(fleet.try_command(both));
  CordonNode cordon{"n1", true, false, "op"};
  cordon.lose_work = true;
  CHECK_FALSE(fleet.try_command(cordon));
  CHECK_FALSE(fleet.state.node_named("n1")->cordoned);
}

}  // namespace
}  // namespace berth::control
