#include "state/fragmentation/fragmentation_index.h"

#include <doctest/doctest.h>

#include <array>
#include <vector>

#include "base/random.h"

namespace berth::state {
namespace {

using fragmentation::kAnyModel;
using fragmentation::Request;

NodeState node_of(std::uint32_t id, std::int64_t cpu_milli, std::vector<std::int16_t> free) {
  NodeState node;
  node.id = NodeId(id);
  node.spec.cpu_milli = 64'000;
  node.free_cpu_milli = cpu_milli;
  for (const std::int16_t milli : free) {
    GpuSlot gpu;
    gpu.model = GpuModelId(0);
    gpu.free_milli = milli;
    node.gpus.push_back(gpu);
  }
  return node;
}

Request one_gpu(std::int64_t cpu_milli) { return {cpu_milli, 1, 1000, kAnyModel}; }

}  // namespace

TEST_CASE("what is left of the CPU is counted in units, whatever was left before") {
  Random random(7);
  for (int i = 0; i < 2000; ++i) {
    const std::int64_t cpu = random.between(0, 64'000);
    const std::int64_t asked = random.between(0, cpu);
    const std::array<std::int32_t, 2> gpus{1000, 300};
    const NodeState node = node_of(0, cpu, {1000, 300});
    const SeenFree before = seen_free(node, cpu, gpus);
    CHECK_EQ(before.free.cpu_milli + before.cpu_rest, cpu);
    fragmentation::NodeTable table{fragmentation::Mix(2)};
    const auto after = table.state_after(table.id_of(before.free), table.id_of(one_gpu(asked)), 1000, before.cpu_rest);
    const std::array<std::int32_t, 2> left{0, 300};
    CHECK(table.node(after) == seen_free(node, cpu - asked, left).free);
  }
}

TEST_CASE("a GPU is stranded when the requests that arrive cannot use it") {
  FragmentationIndex index;
  index.refresh(node_of(0, 64'000, {1000, 1000}));
  index.refresh(node_of(1, 0, {1000}));
  CHECK_EQ(index.idle_milli(), 3000);
  CHECK_EQ(index.unusable_milli(), 0);  // no job was submitted yet
  index.observe(one_gpu(8000), 1000);
  // The mix expects 6 of 1006 requests to want two GPUs.
  CHECK_EQ(index.unusable_milli(), 1000);
  index.refresh(node_of(1, 8000, {1000}));
  CHECK_LT(index.unusable_milli(), 10);
}

TEST_CASE("a node that does not take tasks is not counted, and a learned mix outlives a checkpoint") {
  FragmentationIndex index;
  index.observe(one_gpu(1000), 3);
  NodeState node = node_of(0, 0, {1000});
  index.refresh(node);
  CHECK_GT(index.unusable_milli(), 990);
  node.cordoned = true;
  index.refresh(node);
  CHECK_EQ(index.unusable_milli(), 0);
  FragmentationIndex loaded;
  REQUIRE(loaded.load(index.save()));
  CHECK(loaded.mix() == index.mix());
  auto damaged = index.save();
  damaged.counts.front().request.gpus = -1;
  CHECK_FALSE(loaded.load(damaged));
}

}  // namespace berth::state
