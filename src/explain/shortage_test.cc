// What is named as short, against a count of its own by nothing but what nodes and groups say.

#include "explain/shortage.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <string>

#include "explain/why.h"
#include "model/toleration.h"
#include "support/linear_search.h"
#include "support/random_fleet.h"

namespace berth {
namespace {

using state::JobState;
using state::NodeState;
using state::State;

bool names(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

bool may_use(const State& state, const JobState& job, const TaskGroup& group, const NodeState& node) {
  if (node.status != NodeStatus::kReady || node.cordoned) return false;
  if (!group.pool.empty() && group.pool != node.spec.pool) return false;
  if (!group.image.empty() && !node.spec.containers) return false;
  if (!state.may_use(job.queue, job.spec.job_class, node.pool)) return false;
  return std::all_of(node.spec.taints.begin(), node.spec.taints.end(),
                     [&](const Taint& taint) { return tolerates(group.tolerations, taint); }) &&
         std::all_of(group.node_rules.begin(), group.node_rules.end(),
                     [&](const NodeRule& rule) { return allows(rule, node.spec.name, node.spec.labels); }) &&
         std::all_of(group.node_selector.begin(), group.node_selector.end(), [&](const auto& label) {
           return std::find(node.spec.labels.begin(), node.spec.labels.end(), label) != node.spec.labels.end();
         });
}

// One model is cut, into all profiles that are asked.
bool takes(const State& state, const TaskGroup& group, const std::string& model) {
  const bool cut = state.gpu_models()[state.gpu_model_named(model)->index()].mig != nullptr;
  if (cut == group.request.mig_profile.empty()) return false;
  return group.request.gpu_models.empty() || names(group.request.gpu_models, model);
}

bool holds_when_empty(const State& state, const TaskGroup& group, const NodeState& node) {
  std::map<std::string, std::int32_t> healthy;
  for (const Gpu& gpu : node.spec.gpus) {
    if (gpu.healthy && takes(state, group, gpu.model)) ++healthy[gpu.model];
  }
  const auto enough = [&](const auto& one) { return one.second >= group.request.gpus; };
  return node.spec.cpu_milli >= group.request.cpu_milli && node.spec.memory_mib >= group.request.memory_mib &&
         (group.request.gpus == 0 || std::any_of(healthy.begin(), healthy.end(), enough));
}

std::int64_t asked(const TaskGroup& group, std::size_t dim) {
  const std::int64_t one = dim == kDimGpu   ? group.request.total_gpu_milli()
                           : dim == kDimCpu ? group.request.cpu_milli
                                            : group.request.memory_mib;
  return one * group.least();
}

std::int64_t free_on(const State& state, const NodeState& node, const std::vector<const TaskGroup*>& groups,
                     std::size_t dim) {
  if (dim == kDimCpu) return std::max<std::int64_t>(0, node.free_cpu_milli - node.nominated_cpu_milli);
  if (dim == kDimMemory) return std::max<std::int64_t>(0, node.free_memory_mib - node.nominated_memory_mib);
  std::int64_t milli = 0;
  for (std::size_t g = 0; g < node.gpus.size(); ++g) {
    const bool taken = std::any_of(groups.begin(), groups.end(),
                                   [&](const TaskGroup* one) { return takes(state, *one, node.spec.gpus[g].model); });
    if (taken) milli += node.gpus[g].available_milli();
  }
  return milli;
}

// "waits: group g1 needs 4 free CPUs; 3 are free now" of the first that is short, or nothing.
std::string what_is_short(const State& state, const JobState& job) {
  for (const std::uint32_t set :
       job.spec.groups.size() == 1 ? std::vector<std::uint32_t>{1} : std::vector<std::uint32_t>{3, 1, 2}) {
    for (const std::size_t dim : {kDimGpu, kDimCpu, kDimMemory}) {
      std::int64_t want = 0;
      std::vector<const TaskGroup*> groups;
      for (std::size_t g = 0; g < job.spec.groups.size(); ++g) {
        if ((set >> g & 1U) == 0 || asked(job.spec.groups[g], dim) == 0) continue;
        want += asked(job.spec.groups[g], dim);
        groups.push_back(&job.spec.groups[g]);
      }
      std::int64_t have = 0;
      for (const NodeState& node : state.nodes()) {
        std::vector<const TaskGroup*> here = groups;
        std::erase_if(here, [&](const TaskGroup* one) {
          return !may_use(state, job, *one, node) || !holds_when_empty(state, *one, node);
        });
        if (!here.empty()) have += free_on(state, node, here, dim);
      }
      if (have >= want) continue;
      const bool all = std::popcount(set) == static_cast<int>(job.spec.groups.size());
      std::set<std::string> profiles;
      std::int64_t tasks = 0;
      for (const TaskGroup* one : groups) {
        profiles.insert(one->request.mig_profile);
        tasks += one->least();
      }
      const bool instances = dim == kDimGpu && profiles.size() == 1 && !profiles.begin()->empty();
      const std::string amount = explain::amount_text(dim, want);
      const std::string free_of = dim == kDimMemory ? " of free memory" : dim == kDimCpu ? " free CPU" : " free GPU";
      const std::string plural = dim == kDimMemory || explain::is_one(dim, want) ? "" : "s";
      return (all ? "waits for " : "waits: group " + job.spec.groups[set - 1].name + " needs ") +
             (instances ? std::to_string(tasks) + " x " + *profiles.begin() : amount + free_of + plural) + "; " +
             (have == 0 ? "none" : explain::amount_text(dim, have)) +
             (have == 0 || explain::is_one(dim, have) ? " is free now" : " are free now");
    }
  }
  return {};
}

bool is_strict(NumaPolicy policy) { return policy == NumaPolicy::kRestricted || policy == NumaPolicy::kSingleNumaNode; }

bool fits_with_none(const State& state, JobState job, bool memory, bool cpu) {
  for (TaskGroup& group : job.spec.groups) {
    group.count = group.least();
    if (memory) group.request.memory_mib = 0;
    if (cpu) group.request.cpu_milli = 0;
  }
  return sched::place_slow(state, job, sched::kAllModels, sched::Pools::kAny).has_value();
}

}  // namespace

TEST_CASE("what is named as short is what is short, and nothing else is said where something is") {
  const explain::Viewer everything = explain::Viewer::sees_all();
  std::int64_t in_all = 0;
  std::int64_t of_a_group = 0;
  std::int64_t beside = 0;
  std::int64_t in_pieces = 0;
  for_each_step({0, 150, 12, 2}, [&](Fleet& fleet) {
    while (!fleet.state.maintenance().empty())
      fleet.command(CancelMaintenance{fleet.state.maintenance().begin()->first, "op"});
    for (const JobId id : pending_of(fleet.state)) {
      const JobState& job = *fleet.state.job(id);
      const auto& groups = job.spec.groups;
      if (job.spec.exclusive || job.nomination) continue;
      if (std::any_of(groups.begin(), groups.end(), [](const TaskGroup& one) { return is_strict(one.numa); })) continue;
      const explain::Cause why = explain::why_briefly(fleet.state, {fleet.state, everything, fleet.now}, job);
      if (why.reason.code != ReasonCode::kInsufficientResources && why.reason.code != ReasonCode::kFragmented) continue;
      const std::string expected = what_is_short(fleet.state, job);
      CAPTURE(why.text);
      CAPTURE(expected);
      if (!expected.empty()) {
        REQUIRE(why.text.starts_with(expected));
        ++(expected.starts_with("waits: group") ? of_a_group : in_all);
        continue;
      }
      REQUIRE(why.text.find(", but ") != std::string::npos);
      const bool wants_gpus =
          std::any_of(groups.begin(), groups.end(), [](const TaskGroup& one) { return one.request.gpus > 0; });
      const std::string before = why.text.substr(0, why.text.find(" free now"));
      REQUIRE_EQ(before.find(" GPU") != std::string::npos || before.find("g.") != std::string::npos, wants_gpus);
      const auto says = [&](const std::string& what) { return why.text.find(what) != std::string::npos; };
      if (says("too little CPU and memory")) REQUIRE(fits_with_none(fleet.state, job, true, true));
      if (says("too little memory")) REQUIRE(fits_with_none(fleet.state, job, true, false));
      if (says("too little CPU ") && !says("CPU and memory")) REQUIRE(fits_with_none(fleet.state, job, false, true));
      ++(says("too little") ? beside : in_pieces);
    }
  });
  MESSAGE(in_all << " lack something in all, " << of_a_group << " for one of their groups, " << beside
                 << " something beside it, " << in_pieces << " find it in pieces or beside others");
  CHECK(in_all > 1000);
  CHECK(of_a_group > 10);
  CHECK(beside > 10);
}

}  // namespace berth
