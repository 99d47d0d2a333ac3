#include "sched/cycle.h"

#include <doctest/doctest.h>

#include "control/commit.h"
#include "control/handle.h"
#include "control/reconcile.h"
#include "explain/why.h"

namespace berth {
namespace {

// A small cluster driven by hand: one node with eight GPUs, two teams with four guaranteed GPUs each.
struct Cluster {
  state::State state;
  Timestamp now{1'000'000};

  Cluster() {
    ClusterConfig config = default_cluster_config();
    config.gpu_models = {{"H100", 1000, 81'920}};
    config.queues.clear();
    for (const char* path : {"a", "b"}) {
      QueueConfig queue;
      queue.path = path;
      queue.guaranteed.gpu_milli = 4000;
      config.queues.push_back(queue);
    }
    command(ApplyConfig{config, "test"});
    NodeSpec node;
    node.name = "n1";
    node.cpu_milli = 64'000;
    node.memory_mib = 512 * 1024;
    node.labels = {{"disk", "fast"}};
    for (int i = 0; i < 8; ++i) {
      Gpu gpu;
      gpu.uuid = "GPU-" + std::to_string(i);
      gpu.model = "H100";
      node.gpus.push_back(gpu);
    }
    command(RegisterNode{node});
  }

  control::Reply command(const Command& command) {
    control::Batch batch(state, now);
    auto reply = control::handle(batch, command);
    REQUIRE_MESSAGE(reply.has_value(), (reply ? "" : reply.error().message));
    control::reconcile(batch);
    return *reply;
  }

  Plan cycle() {
    control::Batch batch(state, now);
    const std::uint64_t before = state.digest();
    Plan plan = sched::run_cycle(state, now);
    CHECK_EQ(state.digest(), before);
    CHECK_EQ(state.audit().value_or(""), "");
    control::commit(batch, plan);
    control::reconcile(batch);
    CHECK_EQ(state.audit().value_or(""), "");
    return plan;
  }

  JobId submit(const std::string& queue, std::int32_t tasks, std::int32_t gpus, bool fast = false) {
    JobSpec spec;
    spec.name = "job";
    spec.queue = queue;
    spec.user = "ann";
    TaskGroup group;
    group.count = tasks;
    group.request.gpus = gpus;
    group.command = {"true"};
    if (fast) group.node_selector = {{"disk", "fast"}};
    spec.groups.push_back(group);
    return command(SubmitJob{spec, ""}).job;
  }

  void exit(JobId job, std::int32_t code) {
    const auto& attempt = *state.job(job)->attempt;
    const std::uint32_t number = attempt.number;
    const std::size_t tasks = attempt.tasks.size();
    for (std::uint32_t i = 0; i < tasks; ++i) {
      command(ReportTaskExited{{job, number, i, 1, ExitReason::kExited, code, ""}});
    }
  }
};

// The borrower runs on all GPUs, and the owner is nominated for its half of them.
struct PreemptedCluster : Cluster {
  JobId borrower = submit("b", 1, 8);
  JobId owner;

  PreemptedCluster() {
    cycle();
    owner = submit("a", 1, 4, true);
    cycle();
    REQUIRE(state.job(owner)->nomination.has_value());
  }
};

}  // namespace

TEST_CASE("a gang borrows idle guarantees and gives them back when the owner returns") {
  Cluster cluster;
  const JobId borrower = cluster.submit("b", 1, 8);
  cluster.cycle();
  REQUIRE(cluster.state.job(borrower)->attempt.has_value());
  const JobId owner = cluster.submit("a", 2, 2);
  const Plan plan = cluster.cycle();
  REQUIRE_EQ(plan.decisions.size(), 1);
  CHECK_EQ(std::get<EvictDecision>(plan.decisions[0]).victims, std::vector<JobId>{borrower});
  CHECK(cluster.state.job(borrower)->phase == JobPhase::kStopping);
  CHECK(explain::why(cluster.state, owner, cluster.now, explain::Viewer::sees_all()).reason.code ==
        ReasonCode::kWaitsForVictims);
  cluster.exit(borrower, 0);
  CHECK(cluster.state.job(borrower)->phase == JobPhase::kPending);
  cluster.cycle();
  CHECK(cluster.state.job(owner)->phase == JobPhase::kRunning);
  CHECK(explain::why(cluster.state, borrower, cluster.now, explain::Viewer::sees_all()).reason.code ==
        ReasonCode::kInsufficientResources);
  cluster.exit(owner, 0);
  CHECK_EQ(cluster.state.job(owner), nullptr);
  cluster.cycle();
  CHECK(cluster.state.job(borrower)->phase == JobPhase::kRunning);
  CHECK_EQ(cluster.state.job(borrower)->attempts, 2);
}

TEST_CASE("a gang that is within its guarantee is not reclaimed") {
  Cluster cluster;
  const JobId within = cluster.submit("b", 1, 4);
  cluster.cycle();
  const JobId large = cluster.submit("a", 1, 8);
  const Plan plan = cluster.cycle();
  REQUIRE_EQ(plan.decisions.size(), 1);  // no reservation: nobody knows when the running job ends
  CHECK(std::holds_alternative<SeekDecision>(plan.decisions.front()));
  CHECK(cluster.state.job(within)->phase == JobPhase::kRunning);
  CHECK(cluster.state.job(large)->phase == JobPhase::kPending);
}

TEST_CASE("a victim whose claimant went away is let off") {
  PreemptedCluster cluster;
  cluster.command(CancelJob{cluster.owner, "ann"});
  CHECK(cluster.state.job(cluster.borrower)->phase == JobPhase::kRunning);
  CHECK_EQ(cluster.state.audit().value_or(""), "");
}

TEST_CASE("a nomination ends when its node registers again with a nominated GPU failed") {
  PreemptedCluster cluster;
  const std::uint8_t nominated = cluster.state.job(cluster.owner)->nomination->placements.front().gpus.front();
  NodeSpec spec = cluster.state.node(NodeId(0)).spec;
  spec.gpus[nominated].healthy = false;
  cluster.command(RegisterNode{spec});
  CHECK_FALSE(cluster.state.job(cluster.owner)->nomination.has_value());
  CHECK(cluster.state.job(cluster.borrower)->phase == JobPhase::kRunning);
  CHECK_EQ(cluster.state.audit().value_or(""), "");
}

TEST_CASE("a nominationd node that registers again with other labels or taints is not taken") {
  PreemptedCluster cluster;
  NodeSpec spec = cluster.state.node(NodeId(0)).spec;
  SUBCASE("as it was") {}
  SUBCASE("another label") { spec.labels = {{"disk", "slow"}}; }
  SUBCASE("a taint") { spec.taints = {Taint{"maintained", ""}}; }
  const bool same = spec == cluster.state.node(NodeId(0)).spec;
  cluster.command(RegisterNode{spec});
  cluster.exit(cluster.borrower, 0);
  cluster.cycle();
  CHECK_EQ(cluster.state.job(cluster.owner)->attempt.has_value(), same);
  CHECK_FALSE(cluster.state.job(cluster.owner)->nomination.has_value());
}

TEST_CASE("a saved and loaded state is the same state") {
  PreemptedCluster cluster;
  auto loaded = state::State::load(cluster.state.save());
  REQUIRE(loaded.has_value());
  CHECK_EQ(loaded->digest(), cluster.state.digest());
  CHECK_EQ(loaded->audit().value_or(""), "");
}

}  // namespace berth
