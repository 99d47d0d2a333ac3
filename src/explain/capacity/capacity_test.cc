// Which nodes could go and which would help, by hand and on fleets that live at random.

#include "explain/capacity/capacity.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/codec.h"
#include "support/fleet_fixture.h"
#include "support/random_fleet.h"

namespace berth {
namespace {

using explain::Capacity;
using explain::IdleNode;
using explain::KeptFor;
using explain::NodeKind;
using state::NodeState;
using state::State;

// "n1 n2=guaranteed": the idle nodes of all kinds, and why they stay.
std::string idle_of(const State& state, const Capacity& capacity) {
  std::string text;
  for (const NodeKind& kind : capacity.kinds) {
    for (const IdleNode& idle : kind.idle) {
      text += (text.empty() ? "" : " ") + state.node(idle.node).spec.name;
      if (idle.kept_for != KeptFor::kNothing) text += "=" + std::string(name_of(idle.kept_for));
      if (idle.job.valid()) text += ":" + std::to_string(idle.job.value());
    }
  }
  return text;
}

struct CapacityFixture : FleetFixture {
  Capacity ask(std::int64_t idle_for_ms = 0) {
    const std::uint64_t before = state.digest();
    Capacity capacity = explain::capacity_of(state, now, idle_for_ms);
    CHECK_EQ(state.digest(), before);
    CHECK_EQ(state.audit().value_or(""), "");
    return capacity;
  }
  std::string idle(std::int64_t idle_for_ms = 0) { return idle_of(state, ask(idle_for_ms)); }
  std::string wanted() {
    std::string text;
    for (const NodeKind& kind : ask().kinds) {
      if (!kind.wanted) continue;
      text += (text.empty() ? "" : "; ") + std::to_string(kind.wanted->nodes) + " " + kind.model + " for";
      for (const JobId job : kind.wanted->jobs) text += " " + std::to_string(job.value());
    }
    return text;
  }
  static QueueConfig guaranteed(const std::string& path, std::int64_t gpus) {
    QueueConfig config = queue(path);
    config.guaranteed.gpu_milli = gpus * 1000;
    return config;
  }
  void nodes(int count, const std::string& model = "H100", const std::string& prefix = "n") {
    for (int n = 1; n <= count; ++n) command(RegisterNode{node(prefix + std::to_string(n), 8, model)});
  }
};

}  // namespace

TEST_CASE_FIXTURE(CapacityFixture, "a fleet without nodes has nothing to give, and knows no kind that would help") {
  CHECK(ask().kinds.empty());
  command(ApplyConfig{config({queue("a")}), "op"});
  submit(job("a", 1, 8));
  CHECK(ask().kinds.empty());
  CHECK(ask().complete);
}

TEST_CASE_FIXTURE(CapacityFixture, "a node goes that is idle for long enough, since the last has left") {
  command(ApplyConfig{config({queue("a")}), "op"});
  nodes(2);
  const JobId first = submit(job("a", 1, 8));
  const JobId second = submit(job("a", 1, 8));
  cycle();
  CHECK_EQ(idle(), "");
  now = now + 5000;
  exit(second, 0);
  now = now + 1000;
  exit(first, 0);
  CHECK_EQ(idle(), "n2 n1");
  CHECK_EQ(idle(1000), "n2 n1=recent");
  CHECK_EQ(idle(1001), "n2=recent n1=recent");
  now = now + 10'000;
  CHECK_EQ(idle(11'000), "n2 n1=recent");
  SUBCASE("a checkpoint keeps it") {
    auto loaded = State::load(state.save());
    REQUIRE(loaded);
    CHECK_EQ(loaded->digest(), state.digest());
    CHECK_EQ(idle_of(*loaded, explain::capacity_of(*loaded, now, 11'000)), "n2 n1=recent");
  }
  SUBCASE("of an older one nodes are idle since it was written") {
    Encoder end;
    end.put(std::vector<Timestamp>{state.nodes()[0].idle_since, state.nodes()[1].idle_since});
    end.put(std::vector<Timestamp>());  // no queue that limits evictions has stopped anybody
    const std::string whole = state.save();
    auto loaded = State::load(whole.substr(0, whole.size() - end.take().size()));
    REQUIRE(loaded);
    CHECK_EQ(loaded->node(NodeId(0)).idle_since, state.now());
    CHECK_EQ(loaded->node(NodeId(1)).idle_since, state.now());
  }
  SUBCASE("who has been lost and comes back is idle from then on") {
    command(ReportNodeStatus{"n2", NodeStatus::kLost, ""});
    CHECK_EQ(idle(), "n1");
    now = now + 1000;
    command(RegisterNode{node("n2", 8)});
    CHECK_EQ(idle(), "n1 n2");
    CHECK_EQ(idle(1), "n1 n2=recent");
  }
}

TEST_CASE_FIXTURE(CapacityFixture,
                  "silent nodes and those under maintenance are left out; cordoned ones back nothing") {
  command(ApplyConfig{config({guaranteed("a", 16)}), "op"});
  nodes(4);
  CHECK_EQ(idle(), "n1 n2 n3=guaranteed n4=guaranteed");
  command(CordonNode{"n4", true, false, "op"});
  CHECK_EQ(idle(), "n1 n2=guaranteed n3=guaranteed n4");
  command(ReportNodeStatus{"n3", NodeStatus::kUnknown, ""});
  CHECK_EQ(idle(), "n1=guaranteed n2=guaranteed n4");
  PlanMaintenance plan;
  plan.nodes = {"n2"};
  plan.for_s = 60;
  plan.from = now;
  command(plan);
  CHECK_EQ(idle(), "n1=guaranteed n4");
}

TEST_CASE_FIXTURE(CapacityFixture, "guarantees of any model, of one and of cores are met together") {
  QueueConfig a = guaranteed("a", 8);
  QueueConfig b = queue("b");
  b.guaranteed.model_gpu_milli = {{"H100", 8000}};
  SUBCASE("any and one model need both nodes") {
    command(ApplyConfig{config({a, b}), "op"});
    nodes(1, "A100", "a");
    nodes(1, "H100", "h");
    CHECK_EQ(idle(), "a1=guaranteed h1=guaranteed");
  }
  SUBCASE("what is guaranteed below is part of what is guaranteed above") {
    QueueConfig leaf = queue("a/t");
    leaf.guaranteed.model_gpu_milli = {{"H100", 8000}};
    a.guaranteed.model_gpu_milli = {{"H100", 8000}};
    command(ApplyConfig{config({a, leaf}), "op"});
    nodes(1, "A100", "a");
    nodes(1, "H100", "h");
    CHECK_EQ(idle(), "a1 h1=guaranteed");
  }
  SUBCASE("cores are guaranteed, too") {
    a.guaranteed = {};
    a.guaranteed.cpu_milli = 65'000;
    command(ApplyConfig{config({a}), "op"});
    nodes(3);
    CHECK_EQ(idle(), "n1 n2=guaranteed n3=guaranteed");
  }
  SUBCASE("a pool that is closed to the queue backs nothing of it, and a burst pool nothing at all") {
    ClusterConfig with_pools = config({a, b});
    with_pools.pools = {{"default", {}}, {"closed", {"b"}}, {"rented", {}}};
    with_pools.pools[2].burst = true;
    command(ApplyConfig{with_pools, "op"});
    for (const char* pool : {"closed", "default", "rented"}) {
      NodeSpec spec = node(pool, 8);
      spec.pool = pool;
      command(RegisterNode{spec});
    }
    CHECK_EQ(idle(), "closed=guaranteed default=guaranteed rented");
  }
}

TEST_CASE_FIXTURE(CapacityFixture, "a node stays that is nominated, reserved or of use to a pending job") {
  QueueConfig owner = guaranteed("b", 8);
  command(ApplyConfig{config({queue("a"), owner}), "op"});
  nodes(3);
  CHECK_EQ(idle(), "n1 n2 n3=guaranteed");
  const JobId gang = submit(job("a", 4, 8));
  CHECK_EQ(idle(), "n1=wanted:1 n2=wanted:1 n3=wanted:1");
  CHECK_EQ(wanted(), "1 H100 for 1");
  command(HoldJob{gang, true, "ann"});
  CHECK_EQ(idle(), "n1 n2 n3=guaranteed");
  CHECK_EQ(wanted(), "");
  // One that is about to start keeps the node where it starts.
  submit(job("a", 1, 8));
  CHECK_EQ(idle(), "n1=wanted:2 n2 n3");  // the owner may have n1 back
  CHECK_EQ(wanted(), "");
}

TEST_CASE_FIXTURE(CapacityFixture, "so many nodes are wanted as start all whom more would start, and not one fewer") {
  QueueConfig limited = queue("b");
  limited.max.gpu_milli = 8000;
  command(ApplyConfig{config({queue("a"), limited}), "op"});
  nodes(1);
  nodes(1, "A100", "x");
  submit(job("a", 1, 8));
  submit(job("a", 1, 8));
  cycle();
  CHECK_EQ(wanted(), "");
  for (int i = 0; i < 5; ++i) submit(job("a", 1, 2));
  CHECK_EQ(wanted(), "2 A100 for 3 4 5 6 7; 2 H100 for 3 4 5 6 7");
  JobSpec picky = job("b", 1, 8);
  picky.groups[0].request.gpu_models = {"H100"};
  submit(picky);
  submit(picky);  // above the ceiling of its queue, whatever comes
  CHECK_EQ(wanted(), "2 A100 for 3 4 5 6 7; 3 H100 for 8 3 4 5 6 7");
  SUBCASE("what needs more than are tried is not told") {
    submit(job("a", explain::kMostScaleUp + 1, 8));
    CHECK_EQ(wanted(), "2 A100 for 3 4 5 6 7; 3 H100 for 8 3 4 5 6 7");
  }
  SUBCASE("a kind helps of which no node is left") {
    command(ReportNodeStatus{"x1", NodeStatus::kLost, ""});
    CHECK_EQ(ask().kinds[0].nodes, 0);
    CHECK_NE(wanted().find(" A100 for "), std::string::npos);
  }
}

TEST_CASE_FIXTURE(CapacityFixture, "a further node has the labels and domains that all of its kind have") {
  ClusterConfig with_racks = config({queue("a")});
  with_racks.topology_levels = {"zone", "rack"};
  command(ApplyConfig{with_racks, "op"});
  for (const char* name : {"n1", "n2"}) {
    NodeSpec spec = node(name, 8);
    spec.labels = {{"disk", "fast"}, {"host", name}, {"rack", name}, {"zone", "z"}};
    command(RegisterNode{spec});
    submit(job("a", 1, 8));
  }
  cycle();
  JobSpec here = job("a", 1, 8);
  here.groups[0].node_selector = {{"disk", "fast"}};
  const JobId fast = submit(here);
  here.groups[0].node_selector = {{"host", "n1"}};
  submit(here);
  here.groups[0].node_selector = {};
  here.topology.required = "zone";
  const JobId zone = submit(here);
  here.topology.required = "rack";
  submit(here);
  CHECK_EQ(wanted(), "2 H100 for " + std::to_string(fast.value()) + " " + std::to_string(zone.value()));
}

TEST_CASE_FIXTURE(CapacityFixture, "the work is bounded, and who was not asked is told of") {
  command(ApplyConfig{config({queue("a")}), "op"});
  nodes(1);
  submit(job("a", 1, 8));
  cycle();
  for (int i = 0; i < 150; ++i) submit(job("a", 1, 1));
  const Capacity capacity = ask();
  CHECK_FALSE(capacity.complete);
  REQUIRE(capacity.kinds[0].wanted);
  CHECK_EQ(capacity.kinds[0].wanted->jobs.size(), explain::kMostScaleUpStarts);
  CHECK_EQ(capacity.kinds[0].wanted->nodes, 13);
  const Capacity spent = explain::capacity_of(state, now, 0, {.asks = 400, .nodes_scored = 0});
  CHECK_FALSE(spent.complete);
  CHECK_FALSE(spent.kinds[0].wanted);
}

namespace {

// With pool q for queue a alone: of 20 GPUs for a and 20 for b, what nodes could meet but for those left out. The least
// cut between the queues and the two pools (Ford and Fulkerson), written out.
std::int64_t backed(const State& state, const std::set<NodeId>& without) {
  std::int64_t milli[2] = {0, 0};
  for (const NodeState& node : state.nodes()) {
    if (!node.takes_tasks() || without.contains(node.id) || state.is_burst(node.id)) continue;
    for (const auto& gpu : node.gpus) milli[node.spec.pool == "p" ? 0 : 1] += gpu.healthy ? kMilli : 0;
  }
  return std::min({std::int64_t{40'000}, 20'000 + milli[0], milli[0] + milli[1]});
}

// The same state, for what would really happen.
struct Copy {
  State state;
  Timestamp now;
  void command(const Command& command) {
    control::Batch batch(state, now);
    REQUIRE(control::handle(batch, command));
    control::reconcile(batch);
  }
};

std::set<JobId> starting(State& state, Timestamp now) {
  const explain::ScaleUpEffort effort;
  const explain::ScaleUpSearch further(state, now, effort);
  std::set<JobId> jobs;
  for (const auto& one : further.now()) {
    if (!one.places.empty()) jobs.insert(one.job);
  }
  return jobs;
}

// Nodes that are really there start the same jobs, and one fewer does not.
void check_starts(Fleet& fleet, const NodeSpec& like, const explain::ScaleUpStarts& told, std::size_t& started) {
  Copy copy{std::move(*State::load(fleet.state.save())), fleet.now};
  NodeSpec spec = like;
  for (Gpu& gpu : spec.gpus) gpu.healthy = true;
  const std::set<JobId> before = starting(copy.state, copy.now);
  const std::set<JobId> jobs(told.jobs.begin(), told.jobs.end());
  for (std::int32_t n = 1; n <= told.nodes; ++n) {
    if (n == told.nodes) {
      const std::set<JobId> fewer = starting(copy.state, copy.now);
      CHECK_FALSE(std::includes(fewer.begin(), fewer.end(), jobs.begin(), jobs.end()));
    }
    spec.name = "further" + std::to_string(n);
    for (std::size_t g = 0; g < spec.gpus.size(); ++g) spec.gpus[g].uuid = spec.name + "-" + std::to_string(g);
    copy.command(RegisterNode{spec});
  }
  std::set<JobId> now = starting(copy.state, copy.now);
  CHECK(std::includes(now.begin(), now.end(), jobs.begin(), jobs.end()));
  for (const JobId job : jobs) CHECK_FALSE(before.contains(job));
  const Plan plan = sched::run_cycle(copy.state, copy.now);
  for (const Decision& decision : plan.decisions) {
    const auto* start = std::get_if<StartDecision>(&decision);
    if (start != nullptr && jobs.contains(start->job)) ++started;
  }
}

}  // namespace

TEST_CASE("who could go may go together, and not one more; who is wanted starts whom it says, one fewer does not") {
  std::size_t fleets = 0;
  std::size_t goes = 0;
  std::size_t guaranteed = 0;
  std::size_t wanted = 0;
  std::size_t told = 0;
  std::size_t started = 0;
  for (std::uint64_t seed = 4000; seed < 4060; ++seed) {
    Fleet fleet(seed);
    ClusterConfig config = fleet.state.config();
    for (QueueConfig& queue : config.queues) {
      if (queue.path.size() == 1) queue.guaranteed.gpu_milli = 20'000;
    }
    if (!fleet.command(ApplyConfig{config, "test"})) continue;  // some are drawn with a guarantee above their max
    ++fleets;
    for (int step = 0; step < 12; ++step) {
      fleet.live();
      fleet.cycle();
      CAPTURE(seed);
      CAPTURE(step);
      State& state = fleet.state;
      const std::uint64_t before = state.digest();
      const Capacity capacity = explain::capacity_of(state, fleet.now, 0);
      REQUIRE_EQ(state.digest(), before);
      REQUIRE_EQ(state.audit().value_or(""), "");
      std::set<NodeId> going;
      for (const NodeKind& kind : capacity.kinds) {
        for (const IdleNode& idle : kind.idle) {
          if (idle.kept_for != KeptFor::kNothing) continue;
          going.insert(idle.node);
          CHECK(state.node(idle.node).tasks.empty());
          CHECK(state.node(idle.node).tenants.empty());
        }
      }
      goes += going.size();
      CHECK_EQ(backed(state, going), backed(state, {}));
      for (const NodeKind& kind : capacity.kinds) {
        for (const IdleNode& idle : kind.idle) {
          if (idle.kept_for != KeptFor::kGuaranteed) continue;
          ++guaranteed;
          std::set<NodeId> one_more = going;
          one_more.insert(idle.node);
          CHECK_LT(backed(state, one_more), backed(state, {}));
        }
      }
      const explain::ScaleUpEffort effort;
      const NodeSpec like = state.nodes()[fleet.random.below(state.nodes().size())].spec;
      NodeSpec well = like;
      for (Gpu& gpu : well.gpus) gpu.healthy = true;
      const auto starts = explain::ScaleUpSearch(state, fleet.now, effort).with(well);
      REQUIRE_EQ(state.digest(), before);
      if (!starts) continue;
      ++wanted;
      told += starts->jobs.size();
      check_starts(fleet, like, *starts, started);
    }
  }
  CHECK_GT(fleets, 30);
  CAPTURE(goes);
  CAPTURE(guaranteed);
  CAPTURE(wanted);
  CAPTURE(told);
  CAPTURE(started);
  CHECK_GT(goes, 50);
  CHECK_GT(guaranteed, 50);
  CHECK_GT(wanted, 50);
  CHECK_GT(started * 100, told * 85);  // claims and growth of a whole cycle may take some of what they would have had
}

}  // namespace berth
