#include "sched/place/replica_spread.h"

#include <map>
#include <set>

#include "support/fleet_fixture.h"

namespace berth {
namespace {

struct Services : FleetFixture {
  JobSpec service(std::int32_t replicas, bool spread) const {
    JobSpec spec = job("a", replicas, 1);
    spec.kind = JobKind::kService;
    spec.spread = spread;
    return spec;
  }
  void add_node(const std::string& name, std::vector<std::string> path, std::int32_t gpus = 4) {
    NodeSpec spec = node(name, gpus);
    spec.topology = std::move(path);
    command(RegisterNode{spec});
  }
  void configure(std::vector<std::string> levels, NodeScore score = NodeScore::kFragmentation) {
    ClusterConfig one = config({queue("a")});
    one.topology_levels = std::move(levels);
    one.scheduling.score = score;
    command(ApplyConfig{one, "op"});
  }
  void reconcile() {
    while (!cycle().decisions.empty()) {
    }
  }
  std::map<std::string, int> on_nodes() const {
    std::map<std::string, int> counts;
    for (const JobId id : state.running()) {
      for (const auto& task : state.job(id)->attempt->tasks) ++counts[state.node(task.placement.node).spec.name];
    }
    return counts;
  }
};

using Counts = std::map<std::string, int>;

}  // namespace

TEST_CASE_FIXTURE(Services, "replicas are packed, and spread over the nodes where the service asks for it") {
  for (const NodeScore score : {NodeScore::kBestFit, NodeScore::kFragmentation}) {
    state = state::State();
    configure({}, score);
    for (const char* name : {"n1", "n2", "n3"}) add_node(name, {});
    const JobId packed = submit(service(3, false));
    reconcile();
    CHECK(on_nodes() == Counts{{"n1", 3}});
    command(CancelJob{packed, "ann"});
    for (const JobId id : std::set<JobId>(state.running())) exit(id, 0);
    CHECK(on_nodes().empty());
    submit(service(7, true));
    reconcile();
    CHECK(on_nodes() == Counts{{"n1", 3}, {"n2", 2}, {"n3", 2}});
    CHECK_EQ(state.audit().value_or(""), "");
  }
}

TEST_CASE_FIXTURE(Services, "of nodes with as few replicas that one whose outermost domain has the fewest is taken") {
  configure({"zone", "rack"});
  for (const char* name : {"n1", "n2", "n3"}) add_node(name, {"z1", "r1"});
  add_node("n4", {"z1", "r2"});
  add_node("n5", {"z2", "r1"}, 8);  // the loosest
  submit(service(2, true));
  reconcile();
  CHECK(on_nodes() == Counts{{"n1", 1}, {"n5", 1}});
  JobSpec another = service(3, true);  // another service is spread from the start
  another.name = "another";
  submit(another);
  reconcile();
  CHECK(on_nodes() == Counts{{"n1", 2}, {"n4", 1}, {"n5", 2}});
}

TEST_CASE_FIXTURE(Services, "a required level is kept, and spread within it") {
  configure({"rack"});
  add_node("n1", {"r1"});
  add_node("n2", {"r1"});
  add_node("n3", {"r2"});
  add_node("n4", {});
  JobSpec spec = service(4, true);
  spec.topology.required = "rack";
  submit(spec);
  reconcile();
  CHECK(on_nodes() == Counts{{"n1", 1}, {"n2", 1}, {"n3", 2}});
}

TEST_CASE_FIXTURE(Services, "a full fleet is no reason to wait: replicas share nodes") {
  configure({});
  add_node("n1", {}, 3);
  add_node("n2", {}, 1);
  submit(service(4, true));
  reconcile();
  CHECK(on_nodes() == Counts{{"n1", 3}, {"n2", 1}});
}

TEST_CASE_FIXTURE(Services, "a node that stands elsewhere now takes its replicas along") {
  configure({"rack"});
  add_node("n1", {"r1"});
  add_node("n2", {"r2"});
  submit(service(2, true));
  reconcile();
  CHECK(on_nodes() == Counts{{"n1", 1}, {"n2", 1}});
  add_node("n2", {"r1"});
  CHECK_EQ(state.audit().value_or(""), "");
}

}  // namespace berth
