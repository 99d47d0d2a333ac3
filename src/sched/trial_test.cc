#include "state/trial.h"

#include "sched/fleet_fixture.h"

namespace berth {

TEST_CASE_FIXTURE(FleetFixture, "what a trial changes of limits and nodes is taken back in reverse order") {
  command(ApplyConfig{config({queue("a"), queue("b")}), "op"});
  command(RegisterNode{node("n1", 8)});
  command(CordonNode{"n1", true, false, "op"});
  const QueueId a = state.queue_at("a")->id;
  {
    state::Trial trial(state);
    trial.set_max(a, kDimGpu, 4000);
    const auto mark = trial.mark();
    trial.set_max(a, kDimGpu, 8000);
    trial.set_lending_limit(a, kDimGpu, 2000);
    trial.uncordon(NodeId(0));
    CHECK_EQ(state.queue(a).max[kDimGpu], 8000);
    CHECK_EQ(state.queue(a).lending_limit[kDimGpu], 2000);
    CHECK(state.node(NodeId(0)).takes_tasks());
    trial.rollback_to(mark);
    CHECK_EQ(state.queue(a).max[kDimGpu], 4000);
    CHECK_FALSE(state.node(NodeId(0)).takes_tasks());
  }
  CHECK_EQ(state.queue(a).max[kDimGpu], kUnlimited);
  CHECK_EQ(state.queue(a).lending_limit[kDimGpu], kUnlimited);
  CHECK_EQ(state.audit().value_or(""), "");
}

}  // namespace berth
