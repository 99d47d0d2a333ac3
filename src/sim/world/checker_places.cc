// Checks where a job may start: what each placement and each number of tasks has to keep.

#include <algorithm>

#include "sim/world/checker.h"

namespace berth::sim {

void Checker::check_counts(const JobView& job, const std::vector<TaskPlacement>& placements) {
  std::vector<std::int32_t> counts(job.spec.groups.size());
  for (const TaskPlacement& placement : placements) {
    if (placement.group >= counts.size() || placement.node.index() >= nodes_.size()) {
      return breach("P2", text_of(job.id) + " is placed outside its groups or nodes");
    }
    ++counts[placement.group];
    const TaskRequest& request = job.spec.groups[placement.group].request;
    const bool enough = (placement.countables == request.countables) &&
                        (job.spec.exclusive ||
                         (placement.cpu_milli == request.cpu_milli && placement.memory_mib == request.memory_mib &&
                          std::cmp_equal(placement.gpus.size(), request.gpus)));
    require(enough && (job.spec.exclusive || request.gpus == 0 || placement.gpu_milli == request.gpu_milli), "P2",
            text_of(job.id) + " does not get what its task asked");
  }
  for (std::size_t g = 0; g < counts.size(); ++g) {
    const TaskGroup& group = job.spec.groups[g];
    require(counts[g] >= group.least() && counts[g] <= group.count, "P2",
            text_of(job.id) + " gets " + std::to_string(counts[g]) + " of " + std::to_string(group.least()) + " to " +
                std::to_string(group.count) + " tasks of a group");
  }
  check_topology(job, placements);
  check_groups(job, placements);
}

// Returns the domains of the node from the outermost level to this one; empty if it is in no domain of the level.
std::vector<std::string> Checker::domain_of(const NodeSpec& node, const std::string& level) const {
  if (level == "node") return {node.name};
  std::vector<std::string> names;
  for (const std::string& one : config_.topology_levels) {
    std::string name = names.size() < node.topology.size() ? node.topology[names.size()] : "";
    for (const auto& [key, value] : node.labels) {
      if (name.empty() && key == one) name = value;
    }
    if (one == level && name.empty()) return {};
    names.push_back(name);
    if (one == level) return names;
  }
  return {};
}

// Checks that a gang with a required level is within one domain of it.
void Checker::check_topology(const JobView& job, const std::vector<TaskPlacement>& placements) {
  const std::string& level = job.spec.topology.required;
  if (level.empty() || placements.empty() || violation_) return;
  const auto domain = domain_of(nodes_[placements.front().node.index()].spec, level);
  require(!domain.empty(), "P2", text_of(job.id) + " is placed outside every " + level);
  for (const TaskPlacement& placement : placements) {
    require(domain_of(nodes_[placement.node.index()].spec, level) == domain, "P2",
            text_of(job.id) + " spans two domains of level " + level);
  }
  count("within one " + level);
}

// Returns true if the pool gives its GPUs so: whole, as an instance, or as a share of one.
bool Checker::gives_gpus_as(const TaskPlacement& placement, const std::string& pool, bool share) const {
  for (const PoolConfig& one : config_.pools) {
    if (one.name != pool || one.gpu_levels.empty()) continue;
    const GpuLevel asked = placement.slices != 0 ? GpuLevel::kMig : share ? GpuLevel::kTimeSlice : GpuLevel::kWhole;
    return std::find(one.gpu_levels.begin(), one.gpu_levels.end(), asked) != one.gpu_levels.end();
  }
  return true;
}

// Returns true if a share of the GPU is nominated to a job of another trust domain.
bool Checker::nominated_to_others(const JobView& job, NodeId node, std::uint8_t gpu) const {
  return std::any_of(jobs_.begin(), jobs_.end(), [&](const auto& one) {
    const JobView& other = one.second;
    const auto promised = other.promised();
    if (queues_[other.queue].domain == queues_[job.queue].domain) return false;
    return std::any_of(promised.begin(), promised.end(), [&](const TaskPlacement& placement) {
      return placement.node == node && placement.gpu_milli < kMilli &&
             std::find(placement.gpus.begin(), placement.gpus.end(), gpu) != placement.gpus.end();
    });
  });
}

// Returns the part of the GPU that is held by leaving jobs, if the GPU is nominated to their preemptors.
std::int64_t Checker::leaving_milli(NodeId node, std::uint8_t gpu) const {
  std::int64_t milli = 0;
  for (const auto& [id, job] : jobs_) {
    if (!job.stop || !nominated_elsewhere(id, job.stop->preemptor)) continue;
    for (std::size_t t = job.stop->keep; t < job.placements.size(); ++t) {
      const TaskPlacement& placement = job.placements[t];
      const bool there = std::find(placement.gpus.begin(), placement.gpus.end(), gpu) != placement.gpus.end();
      if (placement.node == node && there) milli += placement.gpu_milli;
    }
  }
  return milli;
}

const MigGeometry* Checker::geometry_of(std::uint32_t model) const {
  for (const GpuModelConfig& one : config_.gpu_models) {
    if (one.name == models_[model]) return mig_geometry(one.mig);
  }
  return nullptr;
}

// Checks a MIG instance: it has the requested profile, begins where the profile allows, and overlaps no other instance.
// A GPU with MIG has only instances, unless an exclusive job has the whole node.
void Checker::check_instance(const JobView& job, const TaskPlacement& placement, const GpuView& gpu) {
  const std::string who = text_of(job.id) + " on " + nodes_[placement.node.index()].spec.name;
  const MigGeometry* mig = geometry_of(gpu.model);
  const std::string& wanted = job.spec.groups[placement.group].request.mig_profile;
  require((mig != nullptr) == !wanted.empty() || job.spec.exclusive, "P11",
          who + ": takes a GPU that is cut without asking an instance, or the reverse");
  if (mig == nullptr || job.spec.exclusive) return;
  const MigProfile* profile = mig->profile_named(wanted);
  require(profile != nullptr, "P11", who + ": its GPU is not cut into " + wanted);
  if (profile == nullptr) return;
  bool begins = false;
  for (std::uint32_t start = 0; start < 8; ++start) {
    if ((profile->starts >> start & 1U) != 0 && placement.slices == profile->at(start)) begins = true;
  }
  require(begins && placement.gpus.size() == 1 && placement.gpu_milli == 1000 * profile->width / mig->slices, "P1",
          who + ": has no instance of " + wanted + " at slices " + slices_text(placement.slices));
  require(std::all_of(gpu.slices.begin(), gpu.slices.end(), [](std::int32_t here) { return here <= 1; }), "P1",
          who + ": its instance overlaps another");
  count("instance");
}

// Requires: the placement is bound.
void Checker::check_countables(const NodeView& node, const TaskPlacement& placement, const std::string& where) {
  std::map<std::string, std::int64_t> takes;
  count_countables(takes, placement, +1);
  for (const auto& taken : takes) {
    const auto& [name, amount] = taken;
    const auto has = std::find_if(node.spec.countables.begin(), node.spec.countables.end(),
                                  [&](const auto& one) { return one.first == taken.first; });
    if (name == "pods" && has == node.spec.countables.end()) continue;
    if (has == node.spec.countables.end()) return breach("P1", where + ": the node has no " + name);
    std::int64_t used = node.counted.at(name);
    for (const auto& [theirs, foreign] : node.foreign.countables) used += theirs == name ? foreign : 0;
    require(used <= has->second, "P1", where + ": " + name + " over capacity");
    count("countable " + name);
  }
}

// Requires: the placement is bound. All rules must still hold with it.
void Checker::check_place(const JobView& job, const TaskPlacement& placement, bool) {
  const NodeView& node = nodes_[placement.node.index()];
  const std::string where = text_of(job.id) + " on " + node.spec.name;
  require(node.status == NodeStatus::kReady && !node.cordoned && node.maintained == 0, "P1",
          where + ": the node takes no tasks");
  require(!closed_to(job, node), "maintenance", where + ": it is not gone before the window");
  require(may_use_pool(job, node.spec.pool), "P1", where + ": its queue and class may not use the pool");
  const TaskGroup& group = job.spec.groups[placement.group];
  require(is_allowed(group, node.spec), "P1", where + ": a taint or a node rule of its group excludes the node");
  if (!group.node_rules.empty()) count("start by node rules");
  const bool image = !job.spec.groups[placement.group].image.empty();
  require(!image || node.spec.containers, "P1", where + ": it has an image, and the node runs no containers");
  if (image) count("start with an image");
  require(node.cpu <= node.spec.cpu_milli && node.memory <= node.spec.memory_mib, "P1",
          where + ": CPU or memory over capacity");
  require((placement.cpu_milli == 0 || node.cpu + node.foreign.cpu_milli <= node.spec.cpu_milli) &&
              (placement.memory_mib == 0 || node.memory + node.foreign.memory_mib <= node.spec.memory_mib),
          "P1", where + ": takes CPU or memory that others use");
  check_countables(node, placement, where);
  require(node.exclusive <= (job.spec.exclusive ? 1 : 0), "P1", where + ": an exclusive job has the node");
  require(std::max(node.nominated_cpu, std::int64_t{0}) <= node.spec.cpu_milli, "P1",
          where + ": promises over capacity");
  check_numa(job, placement);
  const TaskRequest& request = job.spec.groups[placement.group].request;
  for (const std::uint8_t index : placement.gpus) {
    const GpuView& gpu = node.gpus[index];
    require(gpu.healthy, "P1", where + ": the GPU is not healthy");
    require(!gpu.foreign, "P1", where + ": others use the GPU");
    require(gpu.bound <= kMilli, "P1", where + ": GPU over capacity");
    require(gpu.bound + gpu.nominated <= kMilli ||
                gpu.bound - leaving_milli(placement.node, index) + gpu.nominated <= kMilli,
            "P5", where + ": takes a GPU that is promised to a claimant");
    const bool share = placement.gpu_milli < kMilli && geometry_of(gpu.model) == nullptr;
    check_instance(job, placement, gpu);
    require(!share || job.spec.latency_objective_ms == 0, "P11", where + ": shares a GPU, and has a latency objective");
    require(gives_gpus_as(placement, node.spec.pool, share), "P11",
            where + ": its pool does not give GPUs at this level of sharing");
    require(!share || gpu.domain == queues_[job.queue].domain, "P11",
            where + ": shares a GPU with another trust domain");
    require(!share || gpu.nominated == 0 || !nominated_to_others(job, placement.node, index), "P5",
            where + ": shares a GPU of which another trust domain is promised a share");
    require(share || gpu.sharers == 0, "P11", where + ": takes a GPU whole that is shared");
    const bool is_any = request.gpu_models.empty() && models_[gpu.model].find('/') == std::string::npos;
    require(is_any || job.spec.exclusive ||
                std::find(request.gpu_models.begin(), request.gpu_models.end(), models_[gpu.model]) !=
                    request.gpu_models.end(),
            "P2", where + ": not a GPU model it asked for");
  }
}

std::int64_t Checker::grace_ms(const JobView& job) const {
  const std::int64_t own = job.spec.checkpoint.grace_s;
  return (own > 0 ? own : *queues_[job.queue].eviction.grace_s) * 1000;
}

bool Checker::is_replica(const JobView& job) const {
  const auto parent = jobs_.find(job.parent);
  return parent != jobs_.end() && parent->second.spec.kind == JobKind::kService;
}

// A job that saves goes on for its grace after its time limit.
std::int64_t Checker::limit_and_grace_ms(const JobView& job) const {
  const bool saves = job.spec.checkpoint.on_signal && !is_replica(job);
  return job.spec.time_limit_s * 1000 + (saves ? grace_ms(job) : 0);
}

// Returns true if a maintenance window of the node begins too early for a job that starts now: before the job ends, or
// before it has run its minimum and can be moved.
bool Checker::closed_to(const JobView& job, const NodeView& node) const {
  const bool moves = job.spec.checkpoint.on_signal || is_replica(job);
  const Timestamp begins = job.running ? job.started : now_;
  return std::any_of(node.windows.begin(), node.windows.end(), [&](const auto& window) {
    const auto& [from, to] = window;
    const bool gone = job.spec.time_limit_s > 0 && begins + limit_and_grace_ms(job) <= from;
    const std::int64_t least_s = std::max<std::int64_t>(*queues_[job.queue].eviction.min_runtime_s, 1);
    return to > now_ && !gone && !(moves && now_ + least_s * 1000 + grace_ms(job) <= from);
  });
}

// Returns true if the job has to leave now for a window of one of its nodes.
bool Checker::departs(const JobView& job) const {
  for (std::size_t t = 0; t < job.placements.size(); ++t) {
    if (job.over[t]) continue;
    for (const auto& [from, to] : nodes_[job.placements[t].node.index()].windows) {
      const bool gone = job.spec.time_limit_s > 0 && job.started + limit_and_grace_ms(job) <= from;
      if (!gone && from.ms - grace_ms(job) <= now_.ms) return true;
    }
  }
  return false;
}

// P13 for windows: each job that has to leave is asked to, except replicas that their service cannot spare.
void Checker::check_departures() {
  for (const auto& [id, job] : jobs_) {
    const bool may_stay = !job.running || job.stopping() || is_replica(job);
    require(may_stay || !departs(job), "P13", text_of(id) + " runs on though a window begins");
  }
}

void Checker::check_max(const JobView& job, const Amounts& amounts) {
  for (std::uint32_t q = job.queue;; q = queues_[q].parent) {
    for (std::size_t d = 0; d < kDims; ++d) {
      if (amounts[d] == 0 || queues_[q].max[d] == kUnlimited) continue;
      require(queues_[q].usage[d] + amounts[d] <= queues_[q].max[d], "P4",
              text_of(job.id) + " raises queue '" + queues_[q].path + "' above its max");
    }
    if (q == 0) break;
  }
}

}  // namespace berth::sim
