// Where a running job could start again when an operator moves it.

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "explain/move_refusal.h"
#include "support/fleet_fixture.h"
#include "support/random_fleet.h"

namespace berth {
namespace {

using state::JobState;
using state::NodeState;
using state::State;

std::vector<NodeId> nodes_of(const JobState& job) {
  std::set<NodeId> nodes;
  for (const state::TaskState& task : job.attempt->tasks) nodes.insert(task.placement.node);
  return {nodes.begin(), nodes.end()};
}

// Returns true if all places are free beside what runs and is nominated, each GPU whole or with enough left.
bool are_free(const State& state, const std::vector<TaskPlacement>& places) {
  std::map<NodeId, std::int64_t> cpu;
  std::map<NodeId, std::int64_t> memory;
  std::map<std::pair<NodeId, std::uint8_t>, std::int64_t> gpus;
  for (const TaskPlacement& place : places) {
    const NodeState& node = state.node(place.node);
    if (!node.takes_tasks()) return false;
    if ((cpu[place.node] += place.cpu_milli) > node.available_cpu_milli()) return false;
    if ((memory[place.node] += place.memory_mib) > node.available_memory_mib()) return false;
    for (const std::uint8_t gpu : place.gpus) {
      if (!node.gpus[gpu].healthy) return false;
      if ((gpus[{place.node, gpu}] += place.gpu_milli) > node.gpus[gpu].available_milli()) return false;
    }
  }
  return true;
}

// Returns true if the job's only task could have a node at once. Looks at the nodes one by one.
bool some_node_has_room(const State& state, const JobState& job, const std::vector<NodeId>& off) {
  const TaskGroup& group = job.spec.groups.front();
  const std::uint32_t pool = state.node(job.attempt->tasks.front().placement.node).pool;
  return std::any_of(state.nodes().begin(), state.nodes().end(), [&](const NodeState& node) {
    std::map<GpuModelId, std::int32_t> whole;  // the GPUs of a task are of one model
    for (const state::GpuSlot& gpu : node.gpus) {
      const bool cut = state.gpu_models()[gpu.model.index()].mig != nullptr;
      if (!cut && gpu.healthy && gpu.available_milli() == kMilli) ++whole[gpu.model];
    }
    const bool gpus = std::any_of(whole.begin(), whole.end(),
                                  [&](const auto& of_model) { return of_model.second >= group.request.gpus; });
    const bool containers = group.image.empty() || node.spec.containers;
    return node.takes_tasks() && containers && node.pool == pool && node.maintenance.empty() &&
           node.spec.taints.empty() && std::find(off.begin(), off.end(), node.id) == off.end() && gpus &&
           node.available_cpu_milli() >= group.request.cpu_milli &&
           node.available_memory_mib() >= group.request.memory_mib;
  });
}

// Returns true for one task of whole GPUs that could be on any node with room: no queue limits a model.
bool is_plain(const State& state, const JobState& job) {
  const JobSpec& spec = job.spec;
  for (QueueId q = job.queue; q != state.root(); q = state.queue(q).parent) {
    const Amounts& max = state.queue(q).max;
    for (std::size_t dim = kDimFirstModel; dim < kDims; ++dim) {
      if (max[dim] != kUnlimited) return false;
    }
  }
  const TaskGroup& group = spec.groups.front();
  const bool any_node = group.request.gpu_models.empty() && group.request.mig_profile.empty() &&
                        group.node_selector.empty() && group.node_rules.empty() &&
                        (group.numa == NumaPolicy::kNone || group.numa == NumaPolicy::kBestEffort);
  return spec.groups.size() == 1 && group.count == 1 && group.request.gpus > 0 && group.request.gpu_milli == kMilli &&
         !spec.exclusive && any_node;
}

// Gives the order as an iteration of the loop would.
bool order(Fleet& fleet, JobId job) {
  control::Batch batch(fleet.state, fleet.now);
  const auto reply = control::handle(batch, MoveJob{job, {}, true, "op"}, explain::find_move_target);
  control::reconcile(batch);
  return reply.has_value();
}

bool lacks_room(const std::string& message) {
  return message.ends_with("(insufficient-resources)") || message.ends_with("(fragmented)");
}

}  // namespace

TEST_CASE("a job is moved to places that are free now, in its pool, off the nodes, where it stands no lower") {
  std::size_t found = 0;
  std::size_t several = 0;
  std::size_t none = 0;
  std::size_t plain = 0;
  std::size_t has_moved = 0;
  for_each_step({0, 60, 25, 2}, [&](Fleet& fleet) {
    State& state = fleet.state;
    for (const JobId id : state.running()) {
      const JobState& job = *state.job(id);
      if (!job.past.empty() && job.past.back().cause == StopCause::kMove) ++has_moved;
      if (job.attempt->stop) continue;
      std::vector<NodeId> off = nodes_of(job);
      if (off.size() > 1 && id.value() % 2 == 0) off.resize(1);
      const std::uint64_t before = state.digest();
      const auto to = explain::find_move_target(state, id, off, fleet.now);
      REQUIRE_EQ(state.digest(), before);
      if (!to) {
        ++none;
        REQUIRE(to.error().code == ErrorCode::kConflict);
        if (!is_plain(state, job) || !lacks_room(to.error().message)) continue;
        ++plain;
        CAPTURE(to.error().message);
        REQUIRE_FALSE(some_node_has_room(state, job, off));
        continue;
      }
      ++found;
      if (job.attempt->tasks.size() > 1) ++several;
      REQUIRE(are_free(state, *to));
      REQUIRE_EQ(to->size(), job.attempt->base_tasks());
      for (const TaskPlacement& place : *to) {
        REQUIRE(std::find(off.begin(), off.end(), place.node) == off.end());
        REQUIRE(state.node(place.node).maintenance.empty());
        REQUIRE_EQ(state.node(place.node).pool, state.node(job.attempt->tasks.front().placement.node).pool);
      }
    }
    // The first job that can be moved is moved, so that the fleets have moved jobs.
    const std::vector<JobId> running(state.running().begin(), state.running().end());
    for (const JobId id : running) {
      if (id.value() % 3 == 0 && order(fleet, id)) break;
    }
    REQUIRE_FALSE(state.audit().has_value());
  });
  MESSAGE("found " << found << ", of them " << several << " for several tasks; none " << none << ", of them " << plain
                   << " looked for one by one; attempts of jobs that have moved, seen " << has_moved);
  CHECK(found > 100);
  CHECK(several > 20);
  CHECK(none > 100);
  CHECK(plain > 20);
  CHECK(has_moved > 50);
}

TEST_CASE("a gang of which a task is over is not moved: that task would run again") {
  FleetFixture fleet;
  fleet.command(ApplyConfig{FleetFixture::config({FleetFixture::queue("team")}), "op"});
  for (const char* name : {"n1", "n2"}) fleet.command(RegisterNode{FleetFixture::node(name, 8)});
  const JobId job = fleet.submit(FleetFixture::job("team", 2, 2));
  fleet.cycle();
  fleet.command(ReportTaskExited{{job, 1, 0, 1, ExitReason::kExited, 0, ""}});
  control::Batch batch(fleet.state, fleet.now);
  const auto reply = control::handle(batch, MoveJob{job, {}, true, "op"}, explain::find_move_target);
  REQUIRE_FALSE(reply.has_value());
  CHECK_EQ(reply.error().message, "job 1 has tasks that have ended; they would run again elsewhere");
  CHECK(batch.records().empty());
}

TEST_CASE("a session is not moved, and nobody is where nothing looks for places") {
  FleetFixture fleet;
  fleet.command(ApplyConfig{FleetFixture::config({FleetFixture::queue("team")}), "op"});
  for (const char* name : {"n1", "n2"}) fleet.command(RegisterNode{FleetFixture::node(name, 8)});
  JobSpec spec = FleetFixture::job("team", 1, 4);
  spec.checkpoint.on_signal = true;
  const JobId job = fleet.submit(spec);
  spec.kind = JobKind::kInteractive;
  control::Batch submission(fleet.state, fleet.now);
  const JobId interactive = fleet.state.next_job_id();
  JobSubmitted submitted;
  submitted.job = interactive;
  submitted.spec = spec;
  submission.emit(submitted);
  fleet.cycle();
  REQUIRE_EQ(fleet.nodes_of(interactive), "n1");
  const auto move = [&](JobId id, const control::FindMoveTarget& move_target) {
    control::Batch batch(fleet.state, fleet.now);
    const auto reply = control::handle(batch, MoveJob{id, {}, true, "op"}, move_target);
    return reply ? std::string() : reply.error().message;
  };
  CHECK_EQ(move(interactive, explain::find_move_target), "job 2 is interactive; sessions are not moved");
  CHECK_EQ(move(job, {}), "this scheduler moves no jobs");
  CHECK_EQ(move(job, explain::find_move_target), "");
  CHECK(fleet.state.job(job)->attempt->stop->cause == StopCause::kMove);
}

}  // namespace berth
