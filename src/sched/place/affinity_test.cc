#include "sched/place/affinity.h"

#include "explain/why.h"
#include "support/fleet_fixture.h"

namespace berth {
namespace {

struct Shop : FleetFixture {
  explicit Shop(const std::string& apart = {}) {
    QueueConfig stranger = queue("stranger");
    stranger.trust_domain = "other";
    ClusterConfig with = config({queue("q"), stranger});
    with.scheduling.score = NodeScore::kBestFit;  // the names below are those of the tightest nodes
    with.topology_levels = {"block", "rack"};
    with.pools = {{"default", {}, {}, false, apart}};
    command(ApplyConfig{with, "op"});
  }

  void add(const std::string& name, const std::vector<std::string>& topology, std::int32_t gpus = 4) {
    NodeSpec spec = node(name, gpus);
    spec.topology = topology;
    command(RegisterNode{spec});
  }
  // a1 and a2 are in rack r1, b1 and b2 in rack r2, both racks in one block; c1 is in no rack.
  void add_racks() {
    add("a1", {"b", "r1"});
    add("a2", {"b", "r1"});
    add("b1", {"b", "r2"});
    add("b2", {"b", "r2"});
    add("c1", {"b"});
  }

  static AffinityTerm term(const std::string& app, const std::string& level, bool required = true) {
    return {{{"app", app}}, level, required};
  }
  JobSpec app(const std::string& name, std::int32_t tasks = 1, std::int32_t gpus = 1) const {
    JobSpec spec = job("q", tasks, gpus);
    spec.labels = {{"app", name}};
    return spec;
  }
  JobSpec near(JobSpec spec, const AffinityTerm& term) const {
    spec.affinity.push_back(term);
    return spec;
  }
  JobSpec away(JobSpec spec, const AffinityTerm& term) const {
    spec.anti_affinity.push_back(term);
    return spec;
  }

  JobId started(const JobSpec& spec) {
    const JobId id = submit(spec);
    cycle();
    cycle();
    return id;
  }
  std::string place(const JobSpec& spec) { return nodes_of(started(spec)); }
  std::string why(JobId id) {
    return std::string(name_of(explain::why(state, id, now, explain::Viewer::sees_all()).reason.code));
  }
};

TEST_CASE("who has to be near a job waits until it runs, and goes where it runs") {
  Shop fleet;
  fleet.add_racks();
  const JobId reader = fleet.started(fleet.near(fleet.app("reader"), Shop::term("cache", "rack")));
  CHECK_EQ(fleet.nodes_of(reader), "waits");
  CHECK_EQ(fleet.why(reader), "affinity");
  JobSpec cache = fleet.app("cache");
  cache.groups.front().node_selector = {};
  cache.topology.required = "node";
  cache.groups.front().request.gpus = 4;
  CHECK_EQ(fleet.place(cache), "a1");
  fleet.cycle();
  CHECK_EQ(fleet.nodes_of(reader), "a2");
  CHECK_FALSE(fleet.state.audit());
}

TEST_CASE("anti-affinity goes both ways, and ends with the job") {
  Shop fleet;
  fleet.add_racks();
  const JobId loud = fleet.started(fleet.away(fleet.app("loud"), Shop::term("quiet", "rack")));
  CHECK_EQ(fleet.nodes_of(loud), "a1");
  CHECK_EQ(fleet.place(fleet.app("quiet", 4, 4)), "waits");  // 2 nodes of the other rack and the one in no rack
  CHECK_EQ(fleet.place(fleet.app("quiet", 1, 4)), "b1");
  CHECK_EQ(fleet.place(fleet.away(fleet.app("loud"), Shop::term("quiet", "rack"))), "a1");
  CHECK_EQ(fleet.place(fleet.app("neither", 1, 2)), "a1");
  fleet.exit(loud, 0);
  fleet.cycle();
  CHECK_EQ(fleet.place(fleet.app("quiet", 1, 2)), "b2");  // another job labelled loud still runs
}

TEST_CASE("a node that is in no domain of the level is away from all and near nobody") {
  Shop fleet;
  fleet.add("c1", {"b"});
  fleet.add("c2", {"b"});
  CHECK_EQ(fleet.place(fleet.app("x")), "c1");
  CHECK_EQ(fleet.place(fleet.away(fleet.app("y"), Shop::term("x", "rack"))), "c1");
  CHECK_EQ(fleet.place(fleet.near(fleet.app("y"), Shop::term("x", "rack"))), "waits");
  CHECK_EQ(fleet.place(fleet.near(fleet.app("y"), Shop::term("x", "block"))), "c1");
}

TEST_CASE("the first of its like may go anywhere, together; the later ones go to it") {
  Shop fleet;
  fleet.add_racks();
  const JobSpec pair = fleet.near(fleet.app("x", 2, 4), Shop::term("x", "rack"));
  CHECK_EQ(fleet.place(fleet.near(fleet.app("x", 3, 4), Shop::term("x", "rack"))), "waits");
  CHECK_EQ(fleet.place(pair), "a1 a2");
  CHECK_EQ(fleet.place(pair), "waits");
  CHECK_EQ(fleet.place(fleet.near(fleet.app("z", 2, 4), Shop::term("z", "rack"))), "b1 b2");
}

TEST_CASE("away from its like: each task in a domain of its own") {
  Shop fleet;
  fleet.add_racks();
  CHECK_EQ(fleet.place(fleet.away(fleet.app("x", 3), Shop::term("x", "node"))), "a1 a2 b1");
  // c1 is in no rack, so any number of tasks may be there.
  CHECK_EQ(fleet.place(fleet.away(fleet.app("y", 4), Shop::term("y", "rack"))), "c1 c1 a1 b1");
  const JobId wide = fleet.started(fleet.away(fleet.app("z", 3, 2), Shop::term("z", "rack")));
  CHECK_EQ(fleet.nodes_of(wide), "c1 a1 b1");
  fleet.exit(wide, 0);
  fleet.cycle();
  fleet.command(CordonNode{"c1", true, false, "op"});
  const JobId waits = fleet.started(fleet.away(fleet.app("z", 3, 2), Shop::term("z", "rack")));
  CHECK_EQ(fleet.nodes_of(waits), "waits");
  CHECK_EQ(fleet.why(waits), "affinity");
}

TEST_CASE("a wish decides among places that fit and never makes a job wait") {
  Shop fleet;
  fleet.add_racks();
  CHECK_EQ(fleet.place(fleet.app("x")), "a1");
  CHECK_EQ(fleet.place(fleet.away(fleet.app("y"), Shop::term("x", "rack", false))), "b1");
  CHECK_EQ(fleet.place(fleet.near(fleet.app("z", 1, 2), Shop::term("y", "node", false))), "b1");
  CHECK_EQ(fleet.place(fleet.near(fleet.app("z"), Shop::term("nobody", "node", false))), "b1");
  // Also for its own tasks: first over the racks and the node in none, then where they fit.
  CHECK_EQ(fleet.place(fleet.away(fleet.app("s", 3), Shop::term("s", "rack", false))), "c1 a1 b2");
}

TEST_CASE("terms know only jobs of the same trust domain") {
  Shop fleet;
  fleet.add("a1", {"b", "r1"});
  JobSpec stranger = fleet.away(fleet.app("x"), Shop::term("x", "block"));
  stranger.queue = "stranger";
  CHECK_EQ(fleet.place(stranger), "a1");
  CHECK_EQ(fleet.place(fleet.app("x")), "a1");
  CHECK_EQ(fleet.place(fleet.near(fleet.app("y"), Shop::term("x", "block"))), "a1");
  JobSpec lonely = fleet.near(fleet.app("y"), Shop::term("y", "block"));
  lonely.queue = "stranger";
  lonely.labels = {};
  CHECK_EQ(fleet.place(lonely), "waits");
}

TEST_CASE("a pool may keep trust domains apart within a level; nodes outside it are one each") {
  Shop fleet("rack");
  fleet.add_racks();
  fleet.add("c2", {"b"});
  JobSpec stranger = fleet.app("s");
  stranger.queue = "stranger";
  CHECK_EQ(fleet.place(fleet.app("x")), "a1");
  const JobId first = fleet.started(stranger);
  CHECK_EQ(fleet.nodes_of(first), "b1");
  stranger.groups.front().request.gpus = 4;
  CHECK_EQ(fleet.place(stranger), "b2");
  CHECK_EQ(fleet.place(fleet.app("x", 3, 4)), "c1 c2 a2");
  const JobId waits = fleet.started(stranger);
  CHECK_EQ(fleet.nodes_of(waits), "waits");
  CHECK_EQ(fleet.why(waits), "fragmented");
  fleet.exit(first, 0);
  fleet.cycle();
  CHECK_EQ(fleet.nodes_of(waits), "b1");
  const JobId ours = fleet.started(fleet.app("x", 1, 4));
  CHECK_EQ(fleet.why(ours), "insufficient-resources");
  fleet.exit(waits, 0);
  fleet.cycle();
  CHECK_EQ(fleet.nodes_of(ours), "waits");
  CHECK_EQ(fleet.why(ours), "trust-domain");
  CHECK_FALSE(fleet.state.audit());
}

TEST_CASE("who sleeps for a domain that others have wakes when the last of them leaves, wherever that was") {
  Shop fleet("rack");
  fleet.add("a1", {"b", "r1"});
  fleet.add("a2", {"b", "r1"}, 8);
  const JobId small = fleet.started(fleet.app("x"));
  CHECK_EQ(fleet.nodes_of(small), "a1");
  JobSpec stranger = fleet.app("s", 1, 8);
  stranger.queue = "stranger";
  const JobId waits = fleet.started(stranger);
  CHECK_EQ(fleet.why(waits), "trust-domain");
  fleet.exit(small, 0);
  fleet.cycle();
  CHECK_EQ(fleet.nodes_of(waits), "a2");
}

TEST_CASE("a claimant is not stopped by those it may take the place of, on other nodes of the domain") {
  Shop fleet("rack");
  ClusterConfig with = fleet.state.config();
  with.queues.front().guaranteed.gpu_milli = 8 * kMilli;
  fleet.command(ApplyConfig{with, "op"});
  fleet.add("a1", {"b", "r1"});
  fleet.add("a2", {"b", "r1"});
  JobSpec stranger = fleet.app("s");
  stranger.queue = "stranger";
  stranger.groups.front().request.gpus = 0;
  const JobId borrows = fleet.started(stranger);
  CHECK_EQ(fleet.nodes_of(borrows), "a1");
  const JobId claims = fleet.submit(fleet.app("x", 1, 4));
  fleet.cycle();
  REQUIRE(fleet.state.job(claims)->nomination);
  CHECK_EQ(fleet.state.job(claims)->nomination->victims, std::vector<JobId>{borrows});
}

TEST_CASE("each group may have a level of its own, within the job's") {
  Shop fleet;
  fleet.add_racks();
  JobSpec gang = fleet.job("q", 2, 4);
  gang.topology.required = "block";
  gang.groups.front().topology.required = "rack";
  TaskGroup servers = gang.groups.front();
  servers.name = "servers";
  servers.count = 2;
  servers.request.gpus = 2;
  servers.topology.required = "node";
  gang.groups.push_back(servers);
  CHECK_EQ(fleet.place(gang), "a1 a2 b1 b1");
  gang.groups.back().count = 1;
  gang.groups.back().request.gpus = 0;
  const JobId second = fleet.started(gang);  // two nodes are free, not in one rack
  CHECK_EQ(fleet.nodes_of(second), "waits");
  const auto why = explain::why(fleet.state, second, fleet.now, explain::Viewer::sees_all()).reason;
  CHECK(why.code == ReasonCode::kTopology);
  CHECK(why.rule == PlaceRule::kGroup);
}

TEST_CASE("a group takes another domain where its first one leaves no room for the others") {
  Shop fleet;
  fleet.add("a1", {"b", "r1"}, 4);
  fleet.add("a2", {"b", "r1"}, 4);
  fleet.add("b1", {"b", "r2"}, 8);
  JobSpec gang = fleet.job("q", 1, 4);  // alone it would go to the tightest node, in the only rack with two
  gang.groups.front().topology.required = "rack";
  TaskGroup pair = gang.groups.front();
  pair.name = "pair";
  pair.count = 2;
  pair.request.gpus = 2;
  pair.request.cpu_milli = 40'000;  // one of them fills a node
  gang.groups.push_back(pair);
  CHECK_EQ(fleet.place(gang), "b1 a1 a2");
}

TEST_CASE("an elastic group grows within its own domain") {
  Shop fleet;
  fleet.add_racks();
  JobSpec gang = fleet.job("q", 3, 4);
  gang.groups.front().min_count = 1;
  gang.groups.front().topology.required = "rack";
  CHECK_EQ(fleet.place(gang), "a1 a2");
}

TEST_CASE("a port of a node is used by one task at a time, also where it is only nominated") {
  Shop shop;
  shop.add("n1", {"b", "r1"});
  shop.add("n2", {"b", "r1"});
  const auto on = [&](const std::string& queue, const std::vector<std::int32_t>& ports, std::int32_t tasks = 1) {
    JobSpec spec = shop.job(queue, tasks, 1);
    spec.ports = ports;
    return spec;
  };
  const JobId web = shop.started(on("q", {8080}));
  CHECK_EQ(shop.nodes_of(web), "n1");
  CHECK_EQ(shop.place(on("q", {80, 443})), "n1");
  CHECK_EQ(shop.place(on("stranger", {443, 8080})), "n2");
  const JobId waits = shop.started(on("q", {443}));
  CHECK_EQ(shop.why(waits), "ports");
  CHECK_EQ(shop.why(shop.started(on("q", {7000}, 3))), "never-fits");
  const JobId pair = shop.started(on("q", {7001}, 2));
  CHECK_EQ(shop.nodes_of(pair), "n1 n2");
  CHECK(state::share_a_port({80, 443}, {1, 443}));
  CHECK_FALSE(state::share_a_port({80, 443}, {1, 444}));
  CHECK_FALSE(state::share_a_port({}, {}));
}

}  // namespace
}  // namespace berth
