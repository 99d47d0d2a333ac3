#pragma once
// Node fit: one task on one node. It says whether the task may use the node, which devices it would take, and how well
// it fits.

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "model/job.h"
#include "state/state.h"

namespace berth::sched {

// Bit m: GPU model m may be used.
using ModelMask = std::uint32_t;
inline constexpr ModelMask kAllModels = ~ModelMask{0};

// What a gang that is being placed has taken of a node, on top of the state.
struct NodeDelta {
  std::int64_t cpu_milli = 0;
  std::int64_t memory_mib = 0;
  std::array<std::int32_t, kMaxGpusPerNode> milli{};
  std::array<MigSlices, kMaxGpusPerNode> slices{};
  Countables countables;
  std::int32_t tasks = 0;

  void add(const TaskPlacement& placement);
  void remove(const TaskPlacement& placement);
  // Returns what is taken of the countable.
  std::int64_t taken_of(std::string_view name) const {
    return name == kPodsCountable ? tasks : amount_in(countables, name);
  }
};

// The time in which a task would run, for checks against maintenance windows. A task that is not certain to end before
// a window may start on the node only if it can be moved away without a loss: it saves when it is asked to leave, or it
// is a replica of a service.
struct RunWindow {
  Timestamp start;                      // earliest start
  Timestamp latest;                     // latest start, if the job waits for victims
  Timestamp gone = Timestamp::never();  // latest end by its time limit
  bool moves = false;
  std::int64_t least_ms = 0;  // of a task that moves: its minimum run time plus grace
};

// A request for a MIG instance: the same profile on each GPU model that the task may use.
struct MigRequirement {
  MigProfile profile;
  std::array<const MigGeometry*, kMaxGpuModels> of{};  // by model; null: not on that model
};

// What one task of a group requires, with all that follows from the job and the fleet computed once.
struct TaskRequirements {
  const TaskGroup& group;
  std::uint16_t group_index = 0;
  ModelMask models = 0;  // allowed by the group and by quota
  TrustDomainId trust_domain;
  bool exclusive = false;
  bool spread = false;
  NumaPolicy numa = NumaPolicy::kBestEffort;      // best effort if the policy changes nothing
  std::vector<bool> classes;                      // by NodeClassId: pool, taints and image allow it
  std::optional<RunWindow> stay;                  // set while maintenance is planned
  std::optional<Amounts> most;                    // exclusive task: its node must count no more
  const std::vector<NodeId>* image_on = nullptr;  // nodes that have its image, ascending; null: ignored
  std::optional<MigRequirement> mig;
  // By NodeClassId: how many tasks the countables of an empty node let it hold. Empty: no countable limits the task.
  std::vector<std::int64_t> class_slots;
};

// The pools to search: ordinary pools back guarantees, burst pools do not.
enum class Pools { kAny, kOrdinary, kBurst };

TaskRequirements task_requirements(const state::State& state, const state::JobState& job, std::size_t group,
                                   ModelMask models, Pools pools = Pools::kAny);

// Returns at how many positions on a GPU an instance of the profile may begin; 0 for a task without MIG. Of profiles of
// equal size the one with fewer positions is placed first.
std::int32_t places_on_a_gpu(const TaskRequirements& ask);

// Ignores the group's image from now on. For explaining a refusal.
void set_image_aside(const state::State& state, const state::JobState& job, TaskRequirements& ask);

// Returns the maintenance window that closes the node to the task; nothing if none does.
std::optional<state::ClosedSpan> closing(const TaskRequirements& ask, const state::NodeState& node);

// Returns true if the countables of the node let one more task run beside what the gang has `taken` of it.
bool has_countables(const TaskRequirements& ask, const state::NodeState& node, const NodeDelta& taken);
// Returns the first countable that is `taken` of the node and of which it has too little; nothing: it has all.
std::optional<std::string_view> short_countable(const state::NodeState& node, const NodeDelta& taken);
// Ignores countables from now on. For explaining a refusal.
inline void set_countables_aside(TaskRequirements& ask) { ask.class_slots.clear(); }

// Returns true if the group has a node selector or node rules.
inline bool selects_by_label(const TaskRequirements& ask) {
  return !ask.group.node_selector.empty() || !ask.group.node_rules.empty();
}
// Returns true if nodes of one class can differ for the task in what the node index does not know: labels, windows, and
// the size of a whole node.
inline bool judged_by_node(const TaskRequirements& ask) { return selects_by_label(ask) || ask.stay || ask.most; }
// Returns true if the node passes these checks of the task: labels, maintenance windows, and for an exclusive task the
// size of the node.
bool suits(const TaskRequirements& ask, const state::NodeState& node);

// Returns true if an untouched node, whose group in the index fits the task, can take it. Checks what the index does
// not know: suits(), countables, and under a strict NUMA policy where the idle GPUs are.
bool passes(const TaskRequirements& ask, const state::NodeState& node);

// Returns the GPU models that the request accepts. A request that names none accepts all models that are not cut into
// MIG instances.
ModelMask allowed_models(const state::State& state, const TaskRequest& request);

// Returns true if the node has the labels that the group selects, and all its node rules allow the node.
bool has_labels(const TaskGroup& group, const NodeSpec& node);

// Returns the shape once its failed GPUs are healthy again. By it is judged what can never start: a failed GPU may
// heal. NUMA domains all of whose GPUs have failed are not counted again, so what fits is at most overestimated.
state::NodeShape healed(state::NodeShape shape);

// Returns how many tasks an empty node of the shape can hold; kUnlimited if the task requests nothing.
std::int64_t slots_when_empty(const TaskRequirements& ask, const state::NodeShape& shape);

// Returns the placement of one more task on the node, with its devices; nothing if it does not fit.
std::optional<TaskPlacement> try_node(const TaskRequirements& ask, const state::NodeState& node,
                                      const NodeDelta& taken);
// Returns how many more instances the GPU can hold beside the slices `used`. Requires a task with MIG.
std::int32_t instances_on(const TaskRequirements& ask, const state::GpuSlot& gpu, MigSlices used);
// Returns true if one more task fits on the node. Cheaper than try_node where the choice of devices does not matter.
bool has_place(const TaskRequirements& ask, const state::NodeState& node, const NodeDelta& taken);

// Returns the cost to the fleet of putting the task on a node that has room for it. For a share it also chooses the
// GPU: the one with the least cost, and of equal ones the fullest. Returns nothing if no GPU takes the share.
struct LeastLoss {
  std::int64_t milli = 0;
  std::uint8_t gpu = 0;
};
std::optional<LeastLoss> least_loss(const state::PlacementLoss& loss, const TaskRequirements& ask,
                                    const state::NodeState& node, const NodeDelta& taken);

// The number of other replicas of the service at a place, for a replica that asks to be spread: on the node first, then
// in the domains around it, the outermost first. Empty for all other tasks.
using Crowd = std::vector<std::int32_t>;

// How well a node fits a task; less is better. Compared in this order: preferred affinity, own tasks on the node (for
// spread jobs), other replicas, cost to the fleet (if nodes are scored), then what stays free on the node: GPUs, image
// missing (sched/place/image_locality.h), CPU. For an exclusive task the size of the node is compared instead: GPUs,
// CPU, memory. Ties go to the node that has been known longest.
struct Fit {
  std::int64_t dislike = 0;
  std::int32_t own_tasks = 0;
  Crowd crowd;
  std::int64_t loss = 0;
  std::int64_t gpu_milli_left = 0;
  bool lacks_image = false;
  std::int64_t cpu_left = 0;
  std::int64_t memory_left = 0;
  NodeId node;
  auto operator<=>(const Fit&) const = default;
};
// Returns true if the node has the task's image and images are looked at.
bool has_image(const TaskRequirements& ask, NodeId node);
// Returns the fit of one task. Requires that the node has room for it.
Fit fit_of(const TaskRequirements& ask, const state::NodeState& node, const NodeDelta& taken);

}  // namespace berth::sched
