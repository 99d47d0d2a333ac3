#include "sched/place/numa.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "base/random.h"
#include "explain/why.h"
#include "sched/place/gpu_locality.h"
#include "support/fleet_fixture.h"

namespace berth {
namespace {

struct NumaFleet : FleetFixture {
  // A node with one GPU for each entry, in that NUMA domain.
  static NodeSpec node_with(const std::string& name, const std::vector<std::int32_t>& domains) {
    NodeSpec spec = node(name, static_cast<std::int32_t>(domains.size()));
    for (std::size_t g = 0; g < domains.size(); ++g) spec.gpus[g].numa = domains[g];
    return spec;
  }
  static JobSpec asking(std::int32_t tasks, std::int32_t gpus, NumaPolicy policy) {
    JobSpec spec = job("a", tasks, gpus);
    spec.groups.front().numa = policy;
    return spec;
  }
  JobId start(const JobSpec& spec) {
    const JobId id = submit(spec);
    cycle();
    return id;
  }
  std::vector<std::uint8_t> gpus_of(JobId id) const { return state.job(id)->attempt->tasks.front().placement.gpus; }
  std::set<std::int32_t> domains_of(const TaskPlacement& placement) const {
    std::set<std::int32_t> domains;
    for (const std::uint8_t gpu : placement.gpus) domains.insert(state.node(placement.node).spec.gpus[gpu].numa);
    return domains;
  }
};

using Gpus = std::vector<std::uint8_t>;

}  // namespace

TEST_CASE("the fewest domains, and how many tasks they hold") {
  CHECK_EQ(sched::most_domains(NumaPolicy::kSingleNumaNode, {4, 4}, 6), 1);
  CHECK_EQ(sched::most_domains(NumaPolicy::kRestricted, {4, 4}, 4), 1);
  CHECK_EQ(sched::most_domains(NumaPolicy::kRestricted, {4, 4}, 5), 2);
  CHECK_EQ(sched::most_domains(NumaPolicy::kRestricted, {1, 4, 2}, 6), 2);
  CHECK_EQ(sched::tasks_within(1, {3, 5}, 2), 3);
  CHECK_EQ(sched::tasks_within(1, {3, 3}, 4), 0);
  CHECK_EQ(sched::tasks_within(2, {2, 2, 2}, 5), 0);
  CHECK_EQ(sched::tasks_within(2, {2, 2, 2}, 4), 1);
}

TEST_CASE_FIXTURE(NumaFleet, "single-numa-node waits where idle GPUs are in two domains, and says so") {
  command(ApplyConfig{config({queue("a")}), "op"});
  command(RegisterNode{node_with("n1", {0, 0, 0, 0, 1, 1, 1, 1})});
  const JobId first = start(asking(1, 3, NumaPolicy::kBestEffort));
  const JobId other = start(asking(1, 3, NumaPolicy::kSingleNumaNode));
  CHECK(gpus_of(first) == Gpus{0, 1, 2});
  CHECK(gpus_of(other) == Gpus{4, 5, 6});
  const JobId waits = start(asking(1, 2, NumaPolicy::kSingleNumaNode));
  CHECK_FALSE(runs(waits));
  const explain::Explanation why = explain::why(state, waits, now, explain::Viewer::sees_all());
  CHECK(why.reason.code == ReasonCode::kNuma);
  CHECK_EQ(why.answer.headline, "Job 3 waits: 2 GPUs are free on 1 node that it may use, but not in one NUMA domain.");
  bool told = false;
  for (const WhyAnswer::Remedy& remedy : why.answer.remedies)
    told = told || remedy.text == "its NUMA policy were best-effort instead of single-numa-node";
  CHECK(told);
  const JobId anyhow = start(asking(1, 2, NumaPolicy::kNone));
  CHECK(gpus_of(anyhow) == Gpus{3, 7});
}

TEST_CASE_FIXTURE(NumaFleet,
                  "restricted takes as few domains as an empty node would need, and an island is passed over for it") {
  command(ApplyConfig{config({queue("a")}), "op"});
  NodeSpec spec = node_with("n1", {0, 0, 0, 0, 1, 1, 1, 1});
  for (const std::size_t g : {2U, 3U, 6U, 7U}) spec.gpus[g].nvlink_island = 1;
  command(RegisterNode{spec});
  const JobId linked = start(asking(1, 4, NumaPolicy::kBestEffort));
  CHECK(gpus_of(linked) == Gpus{0, 1, 4, 5});  // one island across both domains
  command(CancelJob{linked, "ann"});
  exit(linked, 0);
  CHECK(gpus_of(start(asking(1, 4, NumaPolicy::kRestricted))) == Gpus{0, 1, 2, 3});
  CHECK(runs(start(asking(1, 3, NumaPolicy::kRestricted))));
}

TEST_CASE_FIXTURE(NumaFleet, "a GPU that fails does not let a restricted task across domains") {
  command(ApplyConfig{config({queue("a")}), "op"});
  command(RegisterNode{node_with("n1", {0, 0, 1, 1})});
  command(ReportGpuHealth{"n1", 0, false, "worn"});
  command(ReportGpuHealth{"n1", 2, false, "worn"});
  const JobId waits = start(asking(1, 2, NumaPolicy::kRestricted));
  CHECK_FALSE(runs(waits));
  CHECK(explain::why(state, waits, now, explain::Viewer::sees_all()).reason.code == ReasonCode::kNuma);
  command(ReportGpuHealth{"n1", 0, true, "mended"});
  cycle();
  CHECK(runs(waits));
}

TEST_CASE_FIXTURE(NumaFleet, "what no domain of any node could hold never starts") {
  command(ApplyConfig{config({queue("a")}), "op"});
  command(RegisterNode{node_with("n1", {0, 0, 0, 0, 1, 1, 1, 1})});
  const JobId never = start(asking(1, 5, NumaPolicy::kSingleNumaNode));
  const explain::Explanation why = explain::why(state, never, now, explain::Viewer::sees_all());
  CHECK(why.reason.code == ReasonCode::kNeverFits);
  CHECK_EQ(why.answer.headline,
           "Job 1 can never start: the fleet could not hold it under its NUMA policy, even if empty.");
  JobSpec whole = asking(1, 2, NumaPolicy::kSingleNumaNode);
  whole.exclusive = true;  // it would get all eight
  CHECK(explain::why(state, start(whole), now, explain::Viewer::sees_all()).reason.code == ReasonCode::kNeverFits);
  whole.groups.front().request.gpus = 1;
  CHECK(explain::why(state, start(whole), now, explain::Viewer::sees_all()).reason.code == ReasonCode::kNeverFits);
  command(RegisterNode{node_with("n2", {1, 1, 1, 1, 1, 1})});
  cycle();
  CHECK(runs(never));
}

TEST_CASE_FIXTURE(NumaFleet, "best-effort takes near GPUs, none takes them as they come") {
  command(ApplyConfig{config({queue("a")}), "op"});
  command(RegisterNode{node_with("n1", {0, 1, 1, 1})});
  CHECK(gpus_of(start(asking(1, 2, NumaPolicy::kNone))) == Gpus{0, 1});
  CHECK(gpus_of(start(asking(1, 2, NumaPolicy::kBestEffort))) == Gpus{2, 3});
  command(RegisterNode{node_with("n2", {0, 1, 1, 1})});
  CHECK(gpus_of(start(asking(1, 2, NumaPolicy::kBestEffort))) == Gpus{1, 2});
}

TEST_CASE_FIXTURE(NumaFleet, "who gets the whole node gets it as it is") {
  command(ApplyConfig{config({queue("a")}), "op"});
  command(RegisterNode{node_with("n1", {0, 0, 1, 1})});
  command(ReportGpuHealth{"n1", 0, false, "worn"});
  command(ReportGpuHealth{"n1", 2, false, "worn"});
  JobSpec whole = asking(1, 2, NumaPolicy::kRestricted);
  whole.exclusive = true;
  const JobId id = start(whole);
  REQUIRE(runs(id));
  CHECK(gpus_of(id) == Gpus{1, 3});
}

TEST_CASE_FIXTURE(NumaFleet, "victims leave only if the claimant then has its GPUs in one domain") {
  command(ApplyConfig{config({queue("a")}), "op"});
  command(RegisterNode{node_with("n1", {0, 0, 1, 1})});
  JobSpec low = asking(1, 1, NumaPolicy::kBestEffort);
  low.priority_class = "dev";
  std::vector<JobId> ids;
  for (int i = 0; i < 4; ++i) {
    now = now + 1000;
    ids.push_back(start(low));
  }
  now = now + 3'600'000;
  JobSpec high = asking(1, 2, NumaPolicy::kSingleNumaNode);
  high.priority_class = "production";
  const JobId preemptor = start(high);
  REQUIRE(state.job(preemptor)->nomination);
  CHECK(state.job(preemptor)->nomination->placements.front().gpus == Gpus{2, 3});  // the newest leave
  const auto& victims = state.job(preemptor)->nomination->victims;
  CHECK(std::set<JobId>(victims.begin(), victims.end()) == std::set<JobId>{ids[2], ids[3]});
}

// Random nodes and fills: a task is placed exactly if some set of its idle GPUs keeps the policy.
TEST_CASE("a task with a policy finds its GPUs wherever they are") {
  Random random(7);
  int found = 0;
  int refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::vector<std::int32_t> domains;
    for (std::int64_t g = random.between(1, 8); g > 0; --g)
      domains.push_back(static_cast<std::int32_t>(random.between(0, 3)));
    NodeSpec spec = NumaFleet::node_with("n", domains);
    for (Gpu& gpu : spec.gpus) gpu.nvlink_island = static_cast<std::int32_t>(random.between(0, 2));
    Gpus idle;
    for (std::size_t g = 0; g < domains.size(); ++g) {
      if (random.chance(700)) idle.push_back(static_cast<std::uint8_t>(g));
    }
    const std::size_t count = 1 + random.below(domains.size());
    if (count > idle.size()) continue;
    const auto domains_in = [&](std::uint32_t set, const auto& gpus) {
      std::set<std::int32_t> in;
      for (std::size_t g = 0; g < gpus.size(); ++g) {
        if ((set >> g & 1U) != 0) in.insert(domains[gpus[g]]);
      }
      return in.size();
    };
    const auto fewest_of = [&](const auto& gpus) {
      std::size_t fewest = 99;
      for (std::uint32_t set = 0; set < 1U << gpus.size(); ++set) {
        if (static_cast<std::size_t>(std::popcount(set)) == count) fewest = std::min(fewest, domains_in(set, gpus));
      }
      return fewest;
    };
    Gpus all;
    std::map<std::int32_t, std::size_t> sizes;
    for (std::size_t g = 0; g < domains.size(); ++g) {
      all.push_back(static_cast<std::uint8_t>(g));
      ++sizes[domains[g]];
    }
    std::vector<std::size_t> by_domain;
    for (const auto& [domain, size] : sizes) by_domain.push_back(size);
    const std::size_t most = sched::most_domains(NumaPolicy::kRestricted, by_domain, count);
    REQUIRE_EQ(most, fewest_of(all));
    const Gpus picked = sched::local_gpus_within(spec, idle, count, most);
    REQUIRE_EQ(picked.empty(), fewest_of(idle) > most);
    if (picked.empty()) {
      ++refused;
      continue;
    }
    ++found;
    REQUIRE_EQ(picked.size(), count);
    REQUIRE(std::includes(idle.begin(), idle.end(), picked.begin(), picked.end()));
    std::set<std::int32_t> in;
    for (const std::uint8_t gpu : picked) in.insert(domains[gpu]);
    REQUIRE(in.size() <= most);
  }
  CHECK(found > 5000);
  CHECK(refused > 500);
}

}  // namespace berth
