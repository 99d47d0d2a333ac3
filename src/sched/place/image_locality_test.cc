// Where tasks with an image go, and that their start does not depend on it.

#include "sched/place/image_locality.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sched/place/image_holders.h"
#include "sched/place/node_sampling.h"
#include "sched/place/place.h"
#include "sched/start.h"
#include "support/fleet_fixture.h"
#include "support/linear_search.h"
#include "support/random_fleet.h"

namespace berth {
namespace {

using state::JobState;
using state::State;

// Returns the same fleet with no image on any node.
std::optional<State> without_images(const State& state, Timestamp now) {
  auto loaded = State::load(state.save());
  if (!loaded) return std::nullopt;
  for (const state::NodeState& node : state.nodes()) {
    if (!node.spec.containers) continue;
    control::Batch batch(*loaded, now);
    if (!control::handle(batch, ReportNodeImages{node.spec.name, {}})) return std::nullopt;
  }
  return std::move(*loaded);
}

// Adds enough nodes that some are equally tight.
void add_nodes(Fleet& fleet, std::size_t count) {
  for (std::size_t n = fleet.state.nodes().size(); n < count; ++n) fleet.register_node("more" + std::to_string(n));
}

std::int64_t found_by(const State& state, const JobSpec& spec, const std::vector<TaskPlacement>& places) {
  return std::count_if(places.begin(), places.end(), [&](const TaskPlacement& place) {
    const std::string& image = spec.groups[place.group].image;
    const auto& images = state.node(place.node).spec.images;
    return !image.empty() && std::find(images.begin(), images.end(), image) != images.end();
  });
}

std::size_t nodes_of_all(const std::vector<TaskPlacement>& places) {
  std::set<NodeId> nodes;
  for (const TaskPlacement& place : places) nodes.insert(place.node);
  return nodes.size();
}

}  // namespace

TEST_CASE("whether a gang fits, why not, with how many tasks and within what does not depend on images") {
  std::size_t same = 0;
  std::size_t nearer = 0;
  for_each_step({900, 960, 12, 4}, [&](Fleet& fleet) {
    add_nodes(fleet, 48);
    auto blind = without_images(fleet.state, fleet.now);
    REQUIRE(blind);
    for (State* state : {&fleet.state, &*blind}) state->pass_deadlines(fleet.now);
    for (const JobId id : pending_of(fleet.state)) {
      const JobState& job = *fleet.state.job(id);
      if (job.nomination) continue;
      sched::SearchStats work;
      sched::SearchStats plain_work;
      const auto [places, why] = sched::find_places({fleet.state, job, fleet.now, work});
      const auto [plain, plain_why] = sched::find_places({*blind, *blind->job(id), fleet.now, plain_work});
      REQUIRE_EQ(places.has_value(), plain.has_value());
      const bool asks = std::any_of(job.spec.groups.begin(), job.spec.groups.end(),
                                    [](const TaskGroup& group) { return !group.image.empty(); });
      if (!asks) {
        CHECK_FALSE(places != plain);
        CHECK_EQ(work.nodes_scored, plain_work.nodes_scored);
      }
      if (!places) {
        CHECK(why == plain_why);
        continue;
      }
      CHECK_EQ(places->size(), plain->size());
      if (*places == *plain) {
        ++same;
        continue;
      }
      ++nearer;
      CHECK_GT(found_by(fleet.state, job.spec, *places), found_by(fleet.state, job.spec, *plain));
      if (!job.spec.spread) CHECK_LE(nodes_of_all(*places), nodes_of_all(*plain));
      const auto in_burst_pools = [&](const auto& some) {
        return fleet.state.burst_amounts_of(job.spec, some).has_value();
      };
      if (in_burst_pools(*plain)) continue;
      CHECK_FALSE(in_burst_pools(*places));
      const auto within = [&](const auto& some) {
        return fleet.state.within_mask(job.queue, fleet.state.amounts_of(job.spec, some));
      };
      CHECK_EQ(within(*plain) & ~within(*places), 0U);
    }
  });
  CAPTURE(same);
  CHECK_GT(same, 500);
  CHECK_GT(nearer, 50);
}

TEST_CASE("by images every job is placed where a scan of all nodes would place it") {
  std::size_t placed = 0;
  std::size_t found = 0;
  for_each_step({.first = 1000, .end = 1040, .steps = 20, .arrivals = 6}, [&](Fleet& fleet) {
    add_nodes(fleet, 2 * sched::kScoredAtEachEnd);  // all of them are scored
    for (const JobId id : pending_of(fleet.state)) {
      const JobState& job = *fleet.state.job(id);
      if (job.nomination) continue;
      sched::SearchStats work;
      const auto fast = sched::place_by_images(fleet.state, job, sched::kAllModels, work);
      const auto slow = sched::place_slow_by_images(fleet.state, job, sched::kAllModels);
      CAPTURE(id.value());
      if (fast && !slow && job.spec.groups.size() > 1) continue;
      REQUIRE_EQ(fast.has_value(), slow.has_value());
      if (fast) {
        REQUIRE(*fast == *slow);
        ++placed;
        if (found_by(fleet.state, job.spec, *fast) > 0) ++found;
      }
      fleet.command(CancelJob{id, "ann"});
    }
  });
  CHECK_GT(placed, 500);
  CHECK_GT(found, 100);
}

namespace {

struct Crates : FleetFixture {
  Crates() { command(ApplyConfig{config({queue("a")}), "op"}); }

  void add(NodeSpec spec, std::vector<std::string> images = {}) {
    spec.containers = true;
    spec.images = std::move(images);
    command(RegisterNode{spec});
  }
  static JobSpec with_image(std::int32_t tasks, std::int32_t gpus, const std::string& image = "llama") {
    JobSpec spec = job("a", tasks, gpus);
    spec.groups[0].image = image;
    return spec;
  }
  std::string starts_on(const JobSpec& spec) {
    const JobId id = submit(spec);
    cycle();
    return nodes_of(id);
  }
};

}  // namespace

TEST_CASE_FIXTURE(Crates, "a tighter node goes before the image, and the image before fewer CPUs") {
  NodeSpec wide = node("wide", 8);
  wide.cpu_milli = 96'000;
  add(node("tight", 4));
  add(node("narrow", 8));
  add(wide, {"llama"});
  CHECK_EQ(starts_on(with_image(1, 4)), "tight");
  CHECK_EQ(starts_on(with_image(1, 4)), "wide");
  CHECK_EQ(starts_on(job("a", 1, 4)), "wide");  // the tighter one now
  CHECK_EQ(starts_on(with_image(1, 4, "nobody:1")), "narrow");
}

TEST_CASE_FIXTURE(Crates, "a job is placed once, unless it misses its image and some node has it") {
  for (const char* name : {"n1", "n2", "n3"}) add(node(name, 8));
  add(node("n4", 8), {"llama"});
  const auto times = [&](const JobSpec& spec) {
    const JobState& asking = *state.job(submit(spec));
    sched::SearchStats once;
    sched::SearchStats all;
    CHECK(sched::place(state, asking, sched::kAllModels, once));
    CHECK(sched::find_places({state, asking, now, all}));
    return static_cast<double>(all.nodes_scored) / static_cast<double>(once.nodes_scored);
  };
  CHECK_EQ(times(job("a", 2, 4)), 1.0);
  CHECK_EQ(times(with_image(2, 4, "nobody:1")), 1.0);
  CHECK_GT(times(with_image(2, 4)), 1.0);
  command(ReportNodeImages{"n1", {"llama"}});
  CHECK_EQ(times(with_image(2, 4)), 1.0);
}

TEST_CASE_FIXTURE(Crates, "a gang stays on as few nodes and in as few racks as without a look at images") {
  ClusterConfig racks = config({queue("a")});
  racks.topology_levels = {"rack"};
  command(ApplyConfig{racks, "op"});
  for (const char* rack : {"r1", "r2"}) {
    for (const char* which : {"x", "y"}) {
      NodeSpec spec = node(std::string(rack) + which, 8);
      spec.topology = {rack};
      add(spec, std::string(which) == "y" ? std::vector<std::string>{"llama"} : std::vector<std::string>());
    }
  }
  CHECK_EQ(starts_on(with_image(2, 8)), "r1x r1y");  // not r1y and r2y
  CHECK_EQ(starts_on(with_image(4, 2)), "r2y r2y r2y r2y");
}

TEST_CASE_FIXTURE(Crates, "where many nodes have the image they are found as where few have it") {
  for (int n = 0; n < 600; ++n) {
    NodeSpec spec = node("n" + std::to_string(1000 + n), 2);
    spec.cpu_milli = 16'000 + 1000 * (n % 3);
    std::vector<std::string> images;
    if (n == 599) images.emplace_back("few");
    if (n % 2 == 1) images.emplace_back("many");
    add(spec, images);
  }
  REQUIRE_GT(state.images().holders("many")->size(), sched::kFewHolders);
  for (const NodeScore score : {NodeScore::kBestFit, NodeScore::kFragmentation}) {
    ClusterConfig scored = config({queue("a")});
    scored.scheduling.score = score;
    command(ApplyConfig{scored, "op"});
    for (const char* image : {"few", "many"}) {
      for (const std::int32_t tasks : {1, 5, 320}) {
        const JobId id = submit(with_image(tasks, 2, image));
        sched::SearchStats work;
        const auto fast = sched::place_by_images(state, *state.job(id), sched::kAllModels, work);
        CAPTURE(image);
        CAPTURE(tasks);
        REQUIRE(fast);
        const std::int64_t with = std::string(image) == "few" ? 1 : 300;
        CHECK_EQ(found_by(state, state.job(id)->spec, *fast), std::min<std::int64_t>(with, tasks));
        if (tasks < 100) {
          CHECK((*fast == sched::place_slow_by_images(state, *state.job(id), sched::kAllModels)));
          CHECK_LT(work.nodes_scored, 4 * 600);
        }
      }
    }
  }
}

}  // namespace berth
