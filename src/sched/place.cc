#include "sched/place.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/planted.h"
#include "sched/fit_order.h"

namespace berth::sched {

namespace {

using state::JobState;
using state::NodeClassId;
using state::NodeIndex;
using state::NodeShape;
using state::NodeState;
using state::State;

struct Search {
  const State& state;
  const JobState& job;
  ModelMask models;
  PlaceWork& work;
  std::map<NodeId, Taken> taken;
  std::vector<TaskPlacement> placements;
};

// Adds tasks of one group, each on the node it fits best. Nodes that the gang has not touched come from the index in
// the order of their fit; those it has touched stand in `ready` with the placement of one more task. A node that has
// just taken a task is tighter than before, so it stays the best until it is full: a gang costs steps per node, not
// scans per task.
class GroupPlacing {
 public:
  GroupPlacing(Search& search, std::size_t group)
      : search_(search),
        ask_(task_ask(search.state, search.job, group, search.models)),
        order_(search.state, ask_, search.work.nodes_scored) {
    for (const auto& [node, taken] : search.taken) offer(node, taken);
  }

  // Adds one task, or says that none fits.
  bool add() {
    if (!fresh_ && !dry_) draw();
    if (fresh_ && (ready_.empty() || fresh_->first < ready_.begin()->first)) {
      ready_.insert(std::move(*fresh_));
      fresh_.reset();
    }
    if (ready_.empty()) return false;
    auto best = ready_.extract(ready_.begin());
    TaskPlacement& placement = best.mapped();
    Taken& taken = search_.taken[placement.node];
    taken.add(placement);
    offer(placement.node, taken);
    search_.placements.push_back(std::move(placement));
    return true;
  }

 private:
  void offer(NodeId id, const Taken& taken) {
    const NodeState& node = search_.state.node(id);
    if (!allowed(node)) return;
    ++search_.work.nodes_scored;
    if (auto placement = try_node(ask_, node, taken)) {
      const Fit fit = fit_of(ask_, node, taken, *placement);
      ready_.emplace(fit, std::move(*placement));
    }
  }

  bool allowed(const NodeState& node) const {
    return node.takes_tasks() && ask_.classes[search_.state.node_index().class_of(node.id).index()] &&
           has_labels(ask_.group, node.spec);
  }

  // The tightest node that the gang has not touched.
  void draw() {
    while (const auto id = order_.next()) {
      if (search_.taken.contains(*id)) continue;
      const NodeState& node = search_.state.node(*id);
      auto placement = try_node(ask_, node, {});
      // The index cannot tell a GPU shared outside all trust domains from one that is only promised in part.
      BERTH_CHECK(placement.has_value() || ask_.group.request.is_share());
      if (!placement) continue;
      const Fit fit = fit_of(ask_, node, {}, *placement);
      fresh_.emplace(fit, std::move(*placement));
      return;
    }
    dry_ = true;
  }

  Search& search_;
  const TaskAsk ask_;
  FitOrder order_;
  std::map<Fit, TaskPlacement> ready_;
  std::optional<std::pair<Fit, TaskPlacement>> fresh_;
  bool dry_ = false;  // the index has no further node
};

// How many tasks of the group an empty node of the shape holds.
std::int64_t slots_when_empty(const TaskAsk& ask, const NodeShape& shape) {
  const TaskRequest& request = ask.group.request;
  std::int64_t slots = kUnlimited;
  if (request.cpu_milli > 0) slots = std::min(slots, shape.cpu_milli / request.cpu_milli);
  if (request.memory_mib > 0) slots = std::min(slots, shape.memory_mib / request.memory_mib);
  if (request.gpus > 0) {
    std::int64_t usable = 0;
    for (std::size_t m = 0; m < kMaxGpuModels; ++m) {
      const bool allowed = (ask.models >> m & 1U) != 0;
      if (allowed)
        usable += request.is_share() ? shape.gpus[m] * (kMilli / request.gpu_milli) : shape.gpus[m] / request.gpus;
    }
    slots = std::min(slots, usable);
  }
  return ask.exclusive ? std::min<std::int64_t>(slots, 1) : slots;
}

struct FleetFit {
  bool allowed = false;  // some node is of a pool, taints and labels that the group accepts
  bool fits = false;     // the fleet, were it empty, holds what the group asks at least
};

// Judged by shapes of nodes; a group that selects by label is judged node by node, because labels are not indexed.
FleetFit fleet_fit(const State& state, const TaskAsk& ask) {
  FleetFit fit;
  std::int64_t slots = 0;
  const auto count = [&](const NodeShape& shape, std::int64_t known, std::int64_t there) {
    if (!ask.classes[shape.node_class.index()] || known == 0) return;
    fit.allowed = true;
    const std::int64_t here = std::min<std::int64_t>(slots_when_empty(ask, shape), ask.group.count);
    slots += here * there;
  };
  if (ask.group.node_selector.empty()) {
    for (const auto& [shape, nodes] : state.node_index().shapes()) count(shape, nodes.known, nodes.there);
  } else {
    for (const NodeState& node : state.nodes()) {
      if (!has_labels(ask.group, node.spec)) continue;
      count(state.node_index().shape_of(node.id), 1, node.status == NodeStatus::kLost ? 0 : 1);
    }
  }
  fit.fits = slots >= ask.group.least();
  return fit;
}

// Milli-GPUs that are available on nodes and models that the group may use.
std::int64_t available_to(const State& state, const TaskAsk& ask) {
  std::int64_t milli = 0;
  if (ask.group.node_selector.empty()) {
    for (std::size_t c = 0; c < ask.classes.size(); ++c) {
      for (std::size_t m = 0; m < kMaxGpuModels && ask.classes[c]; ++m) {
        if ((ask.models >> m & 1U) == 0) continue;
        milli += state.node_index().available_milli(NodeClassId(static_cast<std::uint16_t>(c)),
                                                    GpuModelId(static_cast<std::uint16_t>(m)));
      }
    }
    return milli;
  }
  for (const NodeState& node : state.nodes()) {
    const bool allowed = node.takes_tasks() && ask.classes[state.node_index().class_of(node.id).index()];
    if (!allowed || !has_labels(ask.group, node.spec)) continue;
    for (const state::GpuSlot& gpu : node.gpus) {
      if ((ask.models >> gpu.model.index() & 1U) != 0) milli += gpu.available_milli();
    }
  }
  return milli;
}

// Distinguishes "never", "busy" and "enough in total, but in the wrong places".
Reason reason_for(const Search& search, std::size_t index) {
  // Quota may have left fewer models than the group allows; what can never be is judged by the group alone.
  const TaskAsk ask = task_ask(search.state, search.job, index, kAllModels);
  Reason reason;
  reason.group = static_cast<std::int32_t>(index);
  reason.asked = ask.group.least() * ask.group.request.total_gpu_milli();
  reason.limit = available_to(search.state, ask);
  const FleetFit fleet = fleet_fit(search.state, ask);
  if (!fleet.fits) {
    reason.code = !fleet.allowed && !search.state.nodes().empty() ? ReasonCode::kPoolClosed : ReasonCode::kNeverFits;
  } else {
    reason.code = reason.limit >= reason.asked && reason.asked > 0 ? ReasonCode::kFragmented : ReasonCode::kGpusBusy;
  }
  return reason;
}

}  // namespace

bool may_use_pool(const State& state, QueueId queue, std::uint32_t pool) {
  const auto& queues = state.pools()[pool].queues;
  return queues.empty() ||
         std::any_of(queues.begin(), queues.end(), [&](QueueId top) { return state.is_below(queue, top); });
}

bool could_hold(const State& state, const JobState& job, std::size_t group, const NodeState& node) {
  const TaskAsk ask = task_ask(state, job, group, kAllModels);
  return ask.classes[state.node_index().class_of(node.id).index()] && has_labels(ask.group, node.spec) &&
         slots_when_empty(ask, state.node_index().shape_of(node.id)) > 0;
}

std::optional<std::vector<TaskPlacement>> place(const State& state, const JobState& job, ModelMask models,
                                                PlaceWork& work, Reason& why) {
  Search search{state, job, models, work, {}, {}};
  for (std::size_t g = 0; g < job.spec.groups.size(); ++g) {
    GroupPlacing group(search, g);
    for (std::int32_t i = 0; i < job.spec.groups[g].least(); ++i) {
      if (group.add()) continue;
      if (planted(Bug::kGangPartial) && i > 0) break;
      why = reason_for(search, g);
      return std::nullopt;
    }
  }
  for (std::size_t g = 0; g < job.spec.groups.size(); ++g) {
    if (job.spec.groups[g].least() == job.spec.groups[g].count) continue;
    GroupPlacing group(search, g);
    for (std::int32_t i = job.spec.groups[g].least(); i < job.spec.groups[g].count && group.add(); ++i) {
    }
  }
  std::stable_sort(search.placements.begin(), search.placements.end(),
                   [](const auto& a, const auto& b) { return a.group < b.group; });
  return std::move(search.placements);
}

}  // namespace berth::sched
