#pragma once
// One task on one node: whether the node is allowed, what of it the task would take, and how tightly it fits.

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/job.h"
#include "state/state.h"

namespace berth::sched {

// Bit m: GPU model m may be used.
using ModelMask = std::uint32_t;
inline constexpr ModelMask kAllModels = ~ModelMask{0};

// What a gang being placed has taken of a node so far, on top of the state.
struct NodeDelta {
  std::int64_t cpu_milli = 0;
  std::int64_t memory_mib = 0;
  std::array<std::int32_t, kMaxGpusPerNode> milli{};
  std::array<MigSlices, kMaxGpusPerNode> slices{};
  std::int32_t tasks = 0;

  void add(const TaskPlacement& placement);
  void remove(const TaskPlacement& placement);
};

// From when to when a task would be there, as far as maintenance windows ask. What is not known to be gone before a
// window may start there only if it can be moved without a loss: it saves when it is asked to leave, or is a replica of
// a service.
struct RunWindow {
  Timestamp start;                      // at the earliest
  Timestamp latest;                     // and at the latest, if it waits for victims that may leave sooner or later
  Timestamp gone = Timestamp::never();  // by its time limit
  bool moves = false;
  std::int64_t least_ms = 0;  // of a task that moves: its minimum run time and its grace
};

// An instance of a GPU that is cut: the same profile on each model that the task may use.
struct MigRequirement {
  MigProfile profile;
  std::array<const MigGeometry*, kMaxGpuModels> of{};  // by model; null: not that one
};

// One task of a group of a job, with what follows from the job and the fleet worked out once.
struct TaskRequirements {
  const TaskGroup& group;
  std::uint16_t group_index = 0;
  ModelMask models = 0;  // that the group allows and quota leaves
  TrustDomainId trust_domain;
  bool exclusive = false;
  bool spread = false;
  NumaPolicy numa = NumaPolicy::kBestEffort;      // as far as it means anything
  std::vector<bool> classes;                      // by NodeClassId: pool, taints and its image allow it
  std::optional<RunWindow> stay;                  // while maintenance is planned
  std::optional<Amounts> most;                    // an exclusive task: its node counts no more than that
  const std::vector<NodeId>* image_on = nullptr;  // nodes that have its image, ascending, where that is looked at
  std::optional<MigRequirement> mig;
};

// Which pools are looked at: those that back guarantees, those that do not, or both.
enum class Pools { kAny, kOrdinary, kBurst };

TaskRequirements task_requirements(const state::State& state, const state::JobState& job, std::size_t group,
                                   ModelMask models, Pools pools = Pools::kAny);

// At how many places of a GPU an instance of the profile may begin; 0 of what asks none. Of profiles that count the
// same the one with fewer places goes first.
std::int32_t places_on_a_gpu(const TaskRequirements& ask);

// As if the group had no image.
void set_image_aside(const state::State& state, const state::JobState& job, TaskRequirements& ask);

// The maintenance window that closes the node to the task, or nothing.
std::optional<state::ClosedSpan> closing(const TaskRequirements& ask, const state::NodeState& node);

inline bool selects_by_label(const TaskRequirements& ask) { return !ask.group.node_selector.empty(); }
// Whether nodes of one class differ to the task by what the node index does not know: labels, windows and what the
// whole node counts.
inline bool judged_by_node(const TaskRequirements& ask) { return selects_by_label(ask) || ask.stay || ask.most; }
// And then, whether the node is one of those it may use.
bool suits(const TaskRequirements& ask, const state::NodeState& node);

// The same, and where the NUMA policy may refuse also whether idle GPUs stand as it wants them: all that an untouched
// node is judged by beside its group in the node index.
bool passes(const TaskRequirements& ask, const state::NodeState& node);

// The GPU models that a request names; when it names none, all those that are not cut.
ModelMask allowed_models(const state::State& state, const TaskRequest& request);

bool has_labels(const TaskGroup& group, const NodeSpec& node);

// How many tasks an empty node of the shape holds; kUnlimited for those that ask nothing.
std::int64_t slots_when_empty(const TaskRequirements& ask, const state::NodeShape& shape);

// One task on the node with its devices, or nothing.
std::optional<TaskPlacement> try_node(const TaskRequirements& ask, const state::NodeState& node,
                                      const NodeDelta& taken);
// How many more instances the GPU holds beside these slices; of a task that asks one.
std::int32_t instances_on(const TaskRequirements& ask, const state::GpuSlot& gpu, MigSlices used);
// Whether there is one; which devices it gets is not worked out where that does not matter.
bool has_place(const TaskRequirements& ask, const state::NodeState& node, const NodeDelta& taken);

// What it costs the fleet to put the task on a node that has a place for it, and the GPU that a share then goes to:
// where the loss is least, of equal ones the fullest. Nothing where no GPU takes the share.
struct LeastLoss {
  std::int64_t milli = 0;
  std::uint8_t gpu = 0;
};
std::optional<LeastLoss> least_loss(const state::PlacementLoss& loss, const TaskRequirements& ask,
                                    const state::NodeState& node, const NodeDelta& taken);

// How many replicas of its service are where, of a replica that asks to be spread: on the node, then in the domains
// around it, the outermost first. Empty for all others.
using Crowd = std::vector<std::int32_t>;

// Where it stands best by the terms that it prefers, who of its own is there, what it costs the fleet, where that is
// asked, then what would stay free on the node, or, of an exclusive task, what it has: GPUs first, then CPU, and of an
// exclusive task memory. Of nodes that leave as many GPUs those that have its image go first, where that is looked at
// (sched/place/image_locality.h). Less is a better fit; spread jobs prefer nodes without their own. Of equal fits the
// node that has been known longest is taken.
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
// Whether the node has the image of the task, as far as that is looked at.
bool has_image(const TaskRequirements& ask, NodeId node);
// Of one task on a node that has a place for it.
Fit fit_of(const TaskRequirements& ask, const state::NodeState& node, const NodeDelta& taken);

}  // namespace berth::sched
