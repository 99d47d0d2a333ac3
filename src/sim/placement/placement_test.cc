#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/random.h"
#include "sim/placement/fleet.h"
#include "sim/placement/policy.h"
#include "sim/placement/published_scores.h"
#include "sim/placement/typical_pods.h"

namespace berth::sim::placement {
namespace {

FleetNode node_with(std::vector<std::int32_t> free, std::int64_t cpu, std::uint32_t model = 0) {
  FleetNode node;
  node.cpu_left = cpu;
  node.mem_left = 1'000'000;
  node.model = model;
  node.gpus = static_cast<std::uint32_t>(free.size());
  std::copy(free.begin(), free.end(), node.free.begin());
  return node;
}

PodShape share(std::int32_t milli, std::int64_t cpu = 1000) { return {.cpu_milli = cpu, .gpus = 1, .milli = milli}; }
PodShape whole(std::int32_t gpus, std::int64_t cpu = 1000) {
  return {.cpu_milli = cpu, .gpus = gpus, .milli = kWholeGpu};
}

}  // namespace

TEST_CASE("a pod fits where CPU, memory, model and GPUs all suffice") {
  auto node = node_with({1000, 400}, 8000, 3);
  CHECK(fits(node, share(400)));
  CHECK(fits(node, whole(1)));
  CHECK_FALSE(fits(node, whole(2)));
  CHECK_FALSE(fits(node, whole(1, 8001)));
  PodShape bound = share(400);
  bound.models = ModelMask{1} << 3U;
  CHECK(fits(node, bound));
  bound.models = ModelMask{1} << 2U;
  CHECK_FALSE(fits(node, bound));
  node.mem_left = 0;
  CHECK(fits(node, share(400)));
  PodShape hungry = share(400);
  hungry.mem_mib = 1;
  CHECK_FALSE(fits(node, hungry));
}

TEST_CASE("a share goes to the tightest GPU, whole GPUs to the first free ones") {
  const auto node = node_with({1000, 400, 700, 1000}, 8000);
  CHECK(tightest_gpus(node, share(300)).view()[0] == 1);
  CHECK(tightest_gpus(node, share(500)).view()[0] == 2);
  const auto two = tightest_gpus(node, whole(2));
  CHECK(std::vector<int>(two.view().begin(), two.view().end()) == std::vector<int>{0, 3});
}

TEST_CASE("release undoes place") {
  auto node = node_with({1000, 400}, 8000);
  const auto before = node;
  const auto gpus = tightest_gpus(node, share(300));
  place(node, share(300), gpus);
  CHECK(node.free[1] == 100);
  CHECK(node.running[0] == 1);
  release(node, share(300), gpus);
  CHECK(node.free == before.free);
  CHECK(node.cpu_left == before.cpu_left);
  CHECK(node.running == before.running);
}

TEST_CASE("typical pods are the most frequent groups that reach 95 %, without regard to memory") {
  std::vector<PodShape> pods(90, whole(1));
  for (int i = 0; i < 90; i += 2) pods[static_cast<std::size_t>(i)].mem_mib = 7;
  pods.insert(pods.end(), 5, share(500));
  pods.insert(pods.end(), 5, share(600));
  const auto mix = typical_pods(pods);
  REQUIRE(mix.size() == 2);
  CHECK(mix[0].shape == whole(1));
  CHECK(mix[0].share == doctest::Approx(90.0 / 95.0));
  CHECK(mix[1].shape == share(600));
}

TEST_CASE("fragmentation follows the paper's three cases") {
  const auto node = node_with({1000, 400}, 8000);
  const auto of = [&](const PodShape& shape) { return fragmentation(node, std::vector<TypicalPod>{{shape, 1, 1.0}}); };
  CHECK(of(PodShape{.cpu_milli = 1000}) == doctest::Approx(1400));  // wants no GPU: it uses none of them
  CHECK(of(whole(2)) == doctest::Approx(1400));                     // cannot run here
  CHECK(of(share(300, 9000)) == doctest::Approx(1400));             // no CPU for it
  CHECK(of(share(500)) == doctest::Approx(400));                    // the second GPU is too small
  CHECK(of(share(300)) == doctest::Approx(0));
}

TEST_CASE("the published scores, computed by hand") {
  const auto idle = node_with({1000, 1000, 1000, 1000}, 64'000);
  CHECK(score_gpu_packing(idle, whole(1)).score == 29);
  CHECK(score_gpu_clustering(idle, whole(1)).score == 25 + 25 * 4000 / 8000);
  CHECK(score_dot_product(idle, whole(2, 64'000)).score == 81);  // 100 * (1 - (0.25 + 0.125) / 2), cut
  CHECK(score_best_fit(idle, whole(4, 64'000)).score == 100);

  auto used = idle;
  place(used, share(600), tightest_gpus(used, share(600)));
  CHECK(score_gpu_packing(used, share(300)).score == 100 - 40 / 10);
  CHECK(score_gpu_packing(used, whole(2)).score == 48);
  CHECK(score_gpu_clustering(used, share(300)).score == 75 + 25 * 4600 / 8000);
  CHECK(score_gpu_clustering(used, whole(1)).score == 25 * 4600 / 8000);
}

TEST_CASE("FGD prefers the GPU whose rest the mix can still use") {
  FragmentationDescent descent({{whole(1), 1, 0.5}, {share(500), 1, 0.5}});
  const auto node = node_with({1000, 500}, 64'000);
  // On GPU 1 nothing of it is left over (F falls by 250), on GPU 0 half of it is lost to the whole pods (F grows by
  // 250).
  const auto scored = descent.score(node, share(500));
  CHECK(scored.gpus.view()[0] == 1);
  CHECK(scored.score == 56);
}

TEST_CASE("remembered scores equal fresh ones after any sequence of changes") {
  for (const auto name : policy_names()) {
    if (name == "Random" || name == "berth-learned") continue;  // these two depend on what they were asked before
    CAPTURE(std::string(name));
    Random random(7);
    Fleet fleet;
    for (int i = 0; i < 12; ++i)
      fleet.push_back(node_with({1000, 1000, 1000}, 24'000, static_cast<std::uint32_t>(i % 2)));
    const std::vector<PodShape> shapes{
        whole(1, 6000), share(300, 2000), share(500, 4000), whole(2, 9000), {.cpu_milli = 5000}};
    const PolicySetup setup{fleet.size(), typical_pods(shapes), 3};
    auto kept = make_policy(name, setup);
    REQUIRE(kept);
    for (int step = 0; step < 60; ++step) {
      const auto& shape = shapes[random.below(shapes.size())];
      auto fresh = make_policy(name, setup);
      const auto choice = (*kept)->pick(fleet, shape);
      CHECK(choice == (*fresh)->pick(fleet, shape));
      if (!choice) continue;
      place(fleet[choice->node], shape, choice->gpus);
      (*kept)->on_change(choice->node);
    }
  }
}

TEST_CASE("Random uses every feasible node and only those") {
  Fleet fleet{node_with({1000}, 8000), node_with({100}, 8000), node_with({1000}, 8000)};
  auto policy = make_policy("Random", {fleet.size(), {}, 1});
  REQUIRE(policy);
  std::vector<int> hits(3);
  for (int i = 0; i < 200; ++i) ++hits[(*policy)->pick(fleet, whole(1))->node];
  CHECK(hits[0] > 50);
  CHECK(hits[1] == 0);
  CHECK(hits[2] > 50);
  CHECK_FALSE((*policy)->pick(fleet, whole(2)).has_value());
}

TEST_CASE("an unknown policy is an error that names it") {
  const auto policy = make_policy("Newest", {});
  REQUIRE_FALSE(policy);
  CHECK(policy.error().message.find("Newest") != std::string::npos);
}

}  // namespace berth::sim::placement
