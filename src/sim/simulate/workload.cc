#include "sim/simulate/workload.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "model/name.h"

namespace berth::sim {
namespace {

using placement::Fleet;
using placement::PodShape;

constexpr std::int64_t kGpusOfCountingNode = 16;  // the most that a node may have
constexpr std::int64_t kMostGpusPerNode = static_cast<std::int64_t>(placement::kMaxGpusPerNode);

std::string name_made_sound(const std::string& text) {
  std::string name = text.substr(0, 40);
  for (char& c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!plain && c != '-' && c != '_' && c != '.') c = '-';
  }
  return well_formed_name(name) ? name : "q" + name + "q";
}

// Queue names by tenant: the tenant itself if the model allows it, otherwise a corrected name with a number.
class QueueNames {
 public:
  const std::string& of(const std::string& tenant) {
    const auto [found, fresh] = names_.try_emplace(tenant);
    if (!fresh) return found->second;
    std::string name = well_formed_name(tenant) ? tenant : name_made_sound(tenant);
    if (!well_formed_name(name)) name = "queue";
    std::string unique = name;
    for (int number = 2; !taken_.insert(unique).second; ++number) unique = name + "-" + std::to_string(number);
    return found->second = unique;
  }

 private:
  std::map<std::string, std::string> names_;
  std::set<std::string> taken_;
};

QueueConfig configured(const OverlayQueue& queue, const std::string& path) {
  QueueConfig config;
  config.path = path;
  config.weight = queue.weight;
  config.guaranteed.gpu_milli = queue.guaranteed_milli;
  config.max.gpu_milli = queue.max_milli;
  return config;
}

// Queues of the overlay, parents first, then one for every tenant that it does not name.
class QueueTree {
 public:
  QueueTree(const std::vector<OverlayQueue>& queues, Workload& workload) : workload_(workload) {
    for (const OverlayQueue& queue : queues) by_name_.emplace(queue.name, &queue);
    for (const OverlayQueue& queue : queues) path_of(queue.name);
  }

  std::uint32_t leaf_of(const std::string& tenant) {
    const auto known = leaves_.find(tenant);
    if (known != leaves_.end()) return known->second;
    const auto index = static_cast<std::uint32_t>(workload_.queues.size());
    WorkloadQueue leaf;
    leaf.tenant = tenant;
    leaf.path = path_of(tenant);
    leaf.place = places_.at(leaf.path);
    workload_.queues.push_back(std::move(leaf));
    return leaves_[tenant] = index;
  }

 private:
  const std::string& path_of(const std::string& tenant) {
    const auto known = paths_.find(tenant);
    if (known != paths_.end()) return known->second;
    const auto stated = by_name_.find(tenant);
    const std::string parent = stated == by_name_.end() ? std::string() : stated->second->parent;
    const std::string own = names_.of(tenant);
    // A parent chain that leads back to itself ends here at the root; the configuration's own check then refuses it.
    std::string& path = paths_[tenant] = own;
    if (!parent.empty()) {
      const std::string above = path_of(parent);
      path = above + "/" + own;
    }
    add(stated == by_name_.end() ? OverlayQueue{tenant, {}, {}, {}, 1} : *stated->second, path);
    return path;
  }

  void add(const OverlayQueue& queue, const std::string& path) {
    workload_.config.queues.push_back(configured(queue, path));
    TreeQueue place;
    place.guaranteed_milli = queue.guaranteed_milli.value_or(0);
    if (queue.max_milli) place.max_milli = *queue.max_milli;
    place.weight = queue.weight;
    const auto above = places_.find(path.substr(0, path.rfind('/')));
    if (path.find('/') != std::string::npos && above != places_.end()) {
      place.parent = above->second;
      workload_.tree[place.parent].is_leaf = false;
    }
    places_.emplace(path, workload_.tree.size());
    workload_.tree.push_back(place);
  }

  Workload& workload_;
  std::map<std::string, std::size_t> places_;  // in Workload::tree, by path
  std::map<std::string, const OverlayQueue*> by_name_;
  std::map<std::string, std::string> paths_;
  std::map<std::string, std::uint32_t> leaves_;
  QueueNames names_;
};

NodeSpec node_spec(const TraceNode& node) {
  NodeSpec spec;
  spec.name = node.name;
  spec.cpu_milli = node.cpu_milli;
  spec.memory_mib = node.mem_mib;
  for (std::int64_t i = 0; i < node.gpus; ++i) {
    Gpu gpu;
    gpu.uuid = node.name + "/" + std::to_string(i);
    gpu.model = node.gpu_model.empty() ? "unstated" : node.gpu_model;
    gpu.simulated = true;
    spec.gpus.push_back(std::move(gpu));
  }
  return spec;
}

Result<void> add_nodes(const Trace& trace, Workload& workload) {
  for (const TraceNode& node : trace.nodes) {
    if (node.gpus > kMostGpusPerNode) {
      return invalid("node " + node.name + " has " + std::to_string(node.gpus) + " GPUs; a node may have " +
                     std::to_string(kMostGpusPerNode));
    }
    workload.nodes.push_back(node_spec(node));
    workload.capacity_gpu_milli += node.gpus * kMilli;
    if (node.gpus == 0) continue;
    const std::string& model = workload.nodes.back().gpus.front().model;
    auto& models = workload.gpu_models;
    if (std::find(models.begin(), models.end(), model) == models.end()) models.push_back(model);
  }
  if (workload.gpu_models.size() > kMaxGpuModels) {
    return invalid("the nodes have more than " + std::to_string(kMaxGpuModels) + " GPU models");
  }
  if (workload.nodes.empty()) return invalid("there are no nodes; give --nodes FILE or a shape such as 56x8xV100");
  return {};
}

placement::ModelMask mask_of(const Workload& workload, const std::vector<std::string>& models) {
  if (models.empty()) return placement::kAnyModel;
  placement::ModelMask mask = 0;
  for (std::size_t m = 0; m < workload.gpu_models.size(); ++m) {
    if (std::find(models.begin(), models.end(), workload.gpu_models[m]) != models.end()) {
      mask |= placement::ModelMask{1} << m;
    }
  }
  return mask;
}

PodShape shape_of(const Workload& workload, const TraceJob& job) {
  PodShape shape;
  shape.cpu_milli = job.cpu_milli;
  shape.mem_mib = job.mem_mib;
  shape.gpus = static_cast<std::int32_t>(std::min<std::int64_t>(job.gpus_per_worker, 1'000'000));
  shape.milli = shape.gpus == 0 ? 0 : static_cast<std::int32_t>(job.gpu_milli);
  shape.models = mask_of(workload, job.gpu_models);
  return shape;
}

// Returns how many workers of one shape an empty fleet holds, up to `enough`. That suffices, because the workers of a
// gang are equal.
std::int64_t workers_that_fit(const Fleet& fleet, const PodShape& shape, std::int64_t enough) {
  std::int64_t count = 0;
  for (placement::FleetNode node : fleet) {
    while (count < enough && placement::fits(node, shape)) {
      placement::place(node, shape, placement::tightest_gpus(node, shape));
      ++count;
    }
    if (count >= enough) break;
  }
  return count;
}

void add_priorities(const Trace& trace, ClusterConfig& config) {
  std::set<std::int64_t> values;
  for (const TraceJob& job : trace.jobs) values.insert(job.priority.value_or(0));
  values.insert(0);
  for (const std::int64_t value : values) {
    const std::string name = (value < 0 ? "minus" : "p") + std::to_string(value < 0 ? -value : value);
    config.priority_classes.push_back({name, static_cast<std::int32_t>(value), value == 0});
  }
}

std::string priority_class_of(const TraceJob& job) {
  const std::int64_t value = job.priority.value_or(0);
  return (value < 0 ? "minus" : "p") + std::to_string(value < 0 ? -value : value);
}

JobOutcome asked_of(const Workload& workload, const WorkloadJob& job) {
  JobOutcome outcome;
  outcome.id = job.source->id;
  outcome.queue = workload.queues[job.queue].tenant;
  outcome.user = job.source->user;
  outcome.job_class = job.source->job_class;
  outcome.priority = job.source->priority.value_or(0);
  outcome.workers = job.workers;
  outcome.gpu_milli = job.gpu_milli;
  outcome.submit_ms = job.submit_ms;
  outcome.useful_ms = job.useful_ms;
  return outcome;
}

bool is_over_max(const Workload& workload, const WorkloadJob& job) {
  for (std::size_t i = workload.queues[job.queue].place; i != TreeQueue::kNoParent; i = workload.tree[i].parent) {
    if (job.gpu_milli > workload.tree[i].max_milli) return true;
  }
  return false;
}

}  // namespace

std::optional<JobClass> product_class(std::string_view text) {
  for (const JobClass one : {JobClass::kTraining, JobClass::kInference, JobClass::kDev, JobClass::kBatch}) {
    if (text == name_of(one)) return one;
  }
  return std::nullopt;
}

void count_gpus_only(Trace& trace) {
  const std::int64_t gpus = fleet_gpu_milli(trace) / kMilli;
  trace.gpus_only = true;
  trace.nodes.clear();
  for (std::int64_t left = gpus; left > 0; left -= kGpusOfCountingNode) {
    TraceNode node;
    node.name = "gpus-" + std::to_string(trace.nodes.size());
    node.gpu_model = "any";
    node.gpus = std::min(left, kGpusOfCountingNode);
    node.cpu_milli = 1'000'000'000;
    node.mem_mib = 1'000'000'000;
    trace.nodes.push_back(std::move(node));
  }
  for (TraceJob& job : trace.jobs) {
    const bool share = job.gpus_per_worker == 1 && job.gpu_milli < kMilli;
    if (!share && job.gpus_per_worker > 0) {
      job.workers = job.gpus_per_worker * job.workers.value_or(1);
      job.gpus_per_worker = 1;
      job.gpu_milli = kMilli;
    }
    job.gpu_models.clear();
    job.cpu_milli = 0;
    job.mem_mib = 0;
  }
  trace.notes.emplace_back("GPUs are counted only: no nodes, no CPU, no memory, no GPU models");
}

Result<Workload> make_workload(const Trace& trace, const std::vector<OverlayQueue>& queues) {
  Workload workload;
  workload.config.name = "simulation";
  workload.config.pools.push_back({"default", {}});
  add_priorities(trace, workload.config);
  if (auto added = add_nodes(trace, workload); !added) return added.error();
  QueueTree tree(queues, workload);
  const Fleet fleet = empty_fleet(workload);
  std::map<std::pair<PodShape, std::int32_t>, bool> known_to_fit;
  placement::PodCounts pods;
  for (const TraceJob& source : trace.jobs) {
    WorkloadJob job;
    job.source = &source;
    job.shape = shape_of(workload, source);
    job.workers = static_cast<std::int32_t>(std::min<std::int64_t>(source.workers.value_or(1), 1'000'000));
    job.gpu_milli = source.total_gpu_milli();
    job.submit_ms = source.submit_ms.value_or(0);
    job.useful_ms = source.duration_ms.value_or(0);
    job.queue = tree.leaf_of(source.tenant);
    const auto [fit, fresh] = known_to_fit.try_emplace({job.shape, job.workers}, false);
    if (fresh) fit->second = workers_that_fit(fleet, job.shape, job.workers) >= job.workers;
    job.fits_empty_fleet = fit->second;
    job.over_max = is_over_max(workload, job);
    pods[job.shape] += job.workers;
    workload.jobs.push_back(job);
  }
  if (workload.jobs.empty()) return invalid("there are no jobs to run");
  std::vector<JobOutcome> asked;
  for (const WorkloadJob& job : workload.jobs) asked.push_back(asked_of(workload, job));
  workload.asked = std::make_shared<const std::vector<JobOutcome>>(std::move(asked));
  if (auto sound = validate(workload.config); !sound) return sound.error();
  workload.mix = placement::typical_pods(pods);
  return workload;
}

namespace {

// Returns the alternatives that the fleet has; if it has none, all of them, and the job is refused.
std::vector<std::string> models_of_fleet(const Workload& workload, const std::vector<std::string>& wanted) {
  std::vector<std::string> there;
  std::copy_if(wanted.begin(), wanted.end(), std::back_inserter(there), [&](const std::string& model) {
    return std::find(workload.gpu_models.begin(), workload.gpu_models.end(), model) != workload.gpu_models.end();
  });
  return there.empty() ? wanted : there;
}

}  // namespace

JobSpec spec_of(const Workload& workload, const WorkloadJob& job) {
  const TraceJob& source = *job.source;
  JobSpec spec;
  spec.name = source.id;
  spec.queue = workload.queues[job.queue].path;
  spec.user = source.user.empty() ? "unstated" : source.user;
  spec.job_class = product_class(source.job_class).value_or(JobClass::kTraining);
  spec.priority_class = priority_class_of(source);
  TaskGroup group;
  group.count = job.workers;
  group.request.cpu_milli = job.shape.cpu_milli;
  group.request.memory_mib = job.shape.mem_mib;
  group.request.gpus = job.shape.gpus;
  group.request.gpu_milli = job.shape.gpus == 0 ? static_cast<std::int32_t>(kMilli) : job.shape.milli;
  group.request.gpu_models = models_of_fleet(workload, source.gpu_models);
  group.command = {"replayed"};
  spec.groups.push_back(std::move(group));
  if (source.time_limit_ms) {
    // The run time of the trace is the truth: a time limit must not cut it.
    const std::int64_t restart = source.checkpoint ? source.checkpoint->restart_ms : 0;
    spec.time_limit_s = std::max(*source.time_limit_ms, job.useful_ms + restart) / 1000 + 1;
  }
  if (source.checkpoint) {
    spec.checkpoint.on_signal = true;
    spec.checkpoint.interval_s = source.checkpoint->interval_ms / 1000;
    spec.checkpoint.grace_s = source.checkpoint->cost_ms / 1000 + 1;
  }
  return spec;
}

placement::Fleet empty_fleet(const Workload& workload) {
  Fleet fleet;
  for (const NodeSpec& spec : workload.nodes) {
    placement::FleetNode node;
    node.cpu_left = spec.cpu_milli;
    node.mem_left = spec.memory_mib;
    node.gpus = static_cast<std::uint32_t>(spec.gpus.size());
    for (std::size_t gpu = 0; gpu < spec.gpus.size(); ++gpu) node.free[gpu] = placement::kWholeGpu;
    if (!spec.gpus.empty()) {
      const auto& models = workload.gpu_models;
      const auto found = std::find(models.begin(), models.end(), spec.gpus.front().model);
      node.model = static_cast<std::uint32_t>(found - models.begin());
    }
    fleet.push_back(node);
  }
  return fleet;
}

}  // namespace berth::sim
