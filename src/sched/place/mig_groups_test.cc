// Gangs whose groups request different MIG profiles.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "sched/place/exhaustive_placement.h"
#include "support/fleet_fixture.h"

namespace berth {
namespace {

struct CutFleet : FleetFixture {
  CutFleet() {
    ClusterConfig cluster = config({queue("a")});
    cluster.gpu_models.back().mig = "h100-80gb";
    command(ApplyConfig{cluster, "op"});
  }

  void join(const std::string& name, std::int32_t gpus) {
    NodeSpec spec = node(name, gpus);
    spec.cuts_gpus = true;
    spec.labels = {{"name", name}};
    command(RegisterNode{spec});
  }
  void fill(const std::string& name, const std::string& profile) {
    JobSpec spec = gang({profile});
    spec.groups.front().node_selector = {{"name", name}};
    const JobId id = submit(spec);
    cycle();
    REQUIRE(runs(id));
  }

  static JobSpec gang(const std::vector<std::string>& profiles) {
    JobSpec spec = job("a", 1, 0);
    const TaskGroup group = spec.groups.front();
    spec.groups.clear();
    for (const std::string& profile : profiles) {
      spec.groups.push_back(group);
      spec.groups.back().name = "g" + std::to_string(spec.groups.size());
      spec.groups.back().request.mig_profile = profile;
    }
    return spec;
  }
};

}  // namespace

TEST_CASE("groups of different profiles find their places in whichever order they are stated") {
  // 4g.40gb has one position on a GPU and 3g.40gb two; one of these is the same.
  std::vector<std::string> profiles{"3g.40gb", "4g.40gb"};
  for (int order = 0; order < 2; ++order) {
    CutFleet fleet;
    fleet.join("n1", 1);
    const JobId id = fleet.submit(CutFleet::gang(profiles));
    fleet.cycle();
    CHECK_EQ(fleet.nodes_of(id), "n1 n1");
    std::swap(profiles.front(), profiles.back());
  }
  // Nine slices of sixteen, in every order.
  profiles = {"1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb"};
  std::sort(profiles.begin(), profiles.end());
  do {
    CutFleet fleet;
    fleet.join("n1", 1);
    fleet.join("n2", 1);
    const JobId id = fleet.submit(CutFleet::gang(profiles));
    fleet.cycle();
    CHECK(fleet.runs(id));
  } while (std::next_permutation(profiles.begin(), profiles.end()));
}

TEST_CASE("on many nodes a group whose profile has fewer places goes before those that count the same") {
  CutFleet fleet;
  for (std::size_t n = 0; n <= sched::kFewNodes; ++n) fleet.join("empty" + std::to_string(n), 0);
  fleet.join("n1", 1);
  fleet.fill("n1", "3g.40gb");  // leaves slices 0 to 3, the only position of a 4g.40gb
  for (const std::string name : {"n2", "n3"}) {
    fleet.join(name, 1);
    fleet.fill(name, "4g.40gb");
  }
  const JobId id = fleet.submit(CutFleet::gang({"3g.40gb", "4g.40gb", "3g.40gb"}));
  fleet.cycle();
  CHECK_EQ(fleet.nodes_of(id), "n2 n1 n3");
}

}  // namespace berth
